"""Waiting for what cannot be interrupted, such as a name look-up: the wait ends in time, the call may go on alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Return ``function()``, run in a thread of its own, which nothing waits for once the time is over.

    Raises:
        TimeoutError: it did not return within ``seconds``.
        BaseException: whatever it raised.
    """
    call = _Call(function)
    thread = threading.Thread(target=call.run, daemon=True)
    thread.start()
    thread.join(max(0.0, seconds))
    return call.result()


class _Call(Generic[T]):
    """A call, and how it ended."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._values: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._values.append(self._function())
        except BaseException as error:  # It is raised again where it was called from.
            self._error = error

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        if not self._values:
            raise TimeoutError
        return self._values[0]
