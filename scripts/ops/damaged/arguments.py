"""Types of arguments of the commands."""

from __future__ import annotations

import argparse


def at_least_one(text: str) -> int:
    """Return a whole number above zero."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above zero")
    return int(text)
