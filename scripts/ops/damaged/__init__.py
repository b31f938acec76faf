"""Damaged copies of labeled images: what other scanners, printers, cameras and uploads make of the same cards."""
