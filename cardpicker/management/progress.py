"""Progress of long commands: one line that renews itself on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

_TERMINAL_INTERVAL_S = 0.2
_PLAIN_INTERVAL_S = 10.0


class Output(Protocol):
    """Where the lines go: Django's wrapper of stderr or stdout."""

    def isatty(self) -> bool:
        """Return whether a person watches."""
        ...

    def write(self, msg: str, style_func: Callable[[str], str] | None = None, ending: str | None = None) -> None:
        """Write ``msg`` and ``ending``."""
        ...

    def flush(self) -> None:
        """Send what was written."""
        ...


class ProgressLine:
    """Shows ``verb done/total``, not oftener than is useful; call it as often as you like."""

    def __init__(self, output: Output, subject: str) -> None:
        self._output = output
        self._subject = subject
        self._terminal = output.isatty()
        self._shown_at = time.monotonic()
        self._width = 0

    def __call__(self, verb: str, done: int, total: int | None = None) -> None:
        """Show that ``done`` of ``total`` have been handled."""
        now = time.monotonic()
        if now - self._shown_at < (_TERMINAL_INTERVAL_S if self._terminal else _PLAIN_INTERVAL_S):
            return
        self._shown_at = now
        text = f"{self._subject}: {done:,}{'' if total is None else f' of {total:,}'} {verb}"
        if self._terminal:
            self._output.write(f"\r{text.ljust(self._width)}", ending="")
            self._output.flush()
            self._width = len(text)
        else:
            self._output.write(text)

    def close(self) -> None:
        """Clear the terminal's line, so that what follows starts clean."""
        if self._width:
            self._output.write("\r" + " " * self._width + "\r", ending="")
            self._output.flush()
            self._width = 0
