"""The parts of ``sweep_ocr.py``."""
