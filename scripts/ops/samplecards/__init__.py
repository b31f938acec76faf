"""Draws the proxy cards of the sample catalog; knows neither Django nor the pipeline that reads them."""
