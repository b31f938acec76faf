"""Fitting of the fallback's scorer: synthetic cards through the real Stage C, rates from them, calibration and proof."""
