"""The parts of ``bench_stage_c.py``: what is measured, each in a file, and how it is told."""
