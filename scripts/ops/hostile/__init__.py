"""The parts of ``hostile_drill.py``."""
