"""A deadline for the answer to every statement, kept on the client's side.

The server's own time-out ends a statement that is slow, and the kernel's ends a connection whose packets are lost. Neither
helps where something between the two keeps both connections open and passes nothing on, or where the server stands still.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from psycopg2 import extensions

logger = logging.getLogger(__name__)

LOOKS_EVERY_S = 1.0


class _Watch:
    """One thread a process, which shuts the sockets whose answer is overdue: whoever waits on one then has its error."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, as a forked process must: the thread stays with its parent, and the lock as it was just then."""
        self._lock = threading.Lock()
        self._due: dict[int, float] = {}
        self._thread: threading.Thread | None = None

    def begin(self, descriptor: int, within_s: float) -> None:
        """Expect an answer on a socket."""
        with self._lock:
            self._due[descriptor] = time.monotonic() + within_s
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, daemon=True, name="database-deadline")
                self._thread.start()

    def end(self, descriptor: int) -> None:
        """Expect it no more. Before this the socket cannot be another's, since its owner waits on it."""
        with self._lock:
            self._due.pop(descriptor, None)

    def _look(self) -> None:
        while True:
            time.sleep(LOOKS_EVERY_S)
            with self._lock:
                now = time.monotonic()
                for descriptor in [descriptor for descriptor, due in self._due.items() if due < now]:
                    del self._due[descriptor]
                    logger.error("the database has not answered in time: its connection is given up")
                    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as silent:
                        silent.shutdown(socket.SHUT_RDWR)


class WatchedCursor(extensions.cursor):
    """A cursor whose statements have a deadline."""

    connection: WatchedConnection

    def execute(self, *arguments: Any) -> None:
        """Execute as any cursor does."""
        with self.connection.answered():
            super().execute(*arguments)

    def fetchmany(self, *arguments: Any) -> list[tuple[Any, ...]]:
        """Fetch; what is fetched by name is asked of the server."""
        with self.connection.answered():
            return super().fetchmany(*arguments)


class WatchedConnection(extensions.connection):
    """A connection whose statements have a deadline."""

    answer_within_s: float

    @contextlib.contextmanager
    def answered(self) -> Iterator[None]:
        """Give the connection up unless the block ends in time."""
        descriptor = self.fileno()
        _watch.begin(descriptor, self.answer_within_s)
        try:
            yield
        finally:
            _watch.end(descriptor)

    def cursor(self, *arguments: Any, **options: Any) -> Any:
        """Return a watched cursor, whatever the connection's default is: Django sets one."""
        return super().cursor(*arguments, **{"cursor_factory": WatchedCursor, **options})

    def commit(self) -> None:
        """Commit as any connection does."""
        with self.answered():
            super().commit()

    def rollback(self) -> None:
        """Roll back as any connection does."""
        with self.answered():
            super().rollback()


def answering_within(seconds: float) -> Callable[..., WatchedConnection]:
    """Return psycopg2's ``connection_factory`` for connections that are given up when no answer comes for so long."""

    def connect(*arguments: Any) -> WatchedConnection:
        made = WatchedConnection(*arguments)
        made.answer_within_s = seconds
        return made

    return connect


_watch = _Watch()
os.register_at_fork(after_in_child=_watch.forget)
