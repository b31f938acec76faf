"""Draws the proxy cards of the sample catalogue; knows neither Django nor the pipeline that reads them."""
