"""Word of a lockout between the runs of all processes and hosts, within milliseconds of the answer that showed it.

A trip stops every run too, but it is stored when the result is taken, and seen at a heartbeat: late enough for several
more images. So a run listens on a connection of its own, and whichever of its threads is locked out tells the others at
once. Without the connection, as behind a transaction pooler, the trip remains.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import threading
from collections.abc import Callable
from typing import Any

import psycopg2
from django.db import Error, connection

from cardpicker.stage_c.fetch.limiter import SHUT

logger = logging.getLogger(__name__)

CHANNEL = "cardpicker_lockout"
_JOIN_S = 5.0


class LockoutWatch:
    """A listening thread of one run; to be made and closed by the thread that coordinates it."""

    def __init__(self, on_lockout: Callable[[str], None]) -> None:
        self._on_lockout = on_lockout
        self._told: list[str] = []
        self._closing = False
        self._wake_reader, self._wake_writer = os.pipe()
        self._session: Any = None
        self._thread = threading.Thread(target=self._run, name="lockout-watch", daemon=True)
        try:
            self._session = connection.get_new_connection(connection.get_connection_params())
            self._session.autocommit = True
            with self._session.cursor() as cursor:
                cursor.execute(f"LISTEN {CHANNEL}")
        except (Error, psycopg2.Error) as error:
            logger.warning("no watch for lockouts elsewhere: %s", " ".join(str(error).split()))
            return
        self._thread.start()

    def tell(self, destination: str) -> None:
        """Let every run know that ``destination`` locks us out; from any thread, without waiting."""
        self._told.append(destination)
        self._wake()

    def close(self) -> None:
        """End the thread, which first says what it was told, and the connection."""
        self._closing = True
        self._wake()
        if self._thread.ident is not None:
            self._thread.join(_JOIN_S)
        if self._session is not None:
            with contextlib.suppress(psycopg2.Error):
                self._session.close()
        os.close(self._wake_reader)
        os.close(self._wake_writer)

    def _wake(self) -> None:
        os.write(self._wake_writer, b"!")

    def _run(self) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._session, selectors.EVENT_READ)
                selector.register(self._wake_reader, selectors.EVENT_READ)
                while not self._closing or self._told:
                    if any(key.fileobj == self._wake_reader for key, _ in selector.select()):
                        os.read(self._wake_reader, 4_096)
                    self._pass_on()
                    self._hear()
        except (psycopg2.Error, OSError) as error:
            # The run goes on without: its own lockouts stop it, and a trip does.
            logger.warning("the watch for lockouts elsewhere ended: %s", " ".join(str(error).split()))

    def _pass_on(self) -> None:
        while self._told:
            destination = self._told.pop()
            with self._session.cursor() as cursor:
                cursor.execute(SHUT, [destination])
                cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, destination])

    def _hear(self) -> None:
        self._session.poll()
        while self._session.notifies:
            self._on_lockout(str(self._session.notifies.pop(0).payload))
