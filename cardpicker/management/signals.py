"""Signals of a command that dispatches."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def leave_on_sigterm() -> None:
    """Turn SIGTERM into SystemExit, raised where the batch is, so that it closes its row and gives its cards back."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(128 + number)
