"""A permit to dispatch: one of a few session advisory locks, held on a PostgreSQL connection of its own.

Imports nothing of this project and no Django. The connection is nobody else's, so nothing that an application does with
its own connections can free the slot; and the server frees it when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg2
from psycopg2 import extensions

logger = logging.getLogger(__name__)

_KNOWS_IDLE_SESSIONS = 140_000
#: Asked before each write of a batch: prepared once a session, it costs the server half as much.
_PREPARE_HELD = """
PREPARE slot_held (bigint, bigint) AS SELECT EXISTS (
    SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()
    AND classid::bigint = $1 AND objid::bigint = $2 AND objsubid = 2 AND granted
)
"""


class TransactionPoolerError(RuntimeError):
    """The slot's connection goes through a pooler, which would take and release a session lock on different sessions."""


class SlotConnectionError(RuntimeError):
    """The slot's connection could not be opened, or broke before the slot was taken; without it nothing may run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSettings:
    """Where the slots are and how many there are."""

    connect: Mapping[str, Any]  #: Parameters of ``psycopg2.connect``, keepalives included.
    slots: int  #: At least 1.
    scope: str  #: Slots are counted within it: the host's name.
    application_name: str = "cardpicker-slot"  #: As the holder is seen in ``pg_stat_activity``.
    #: Seconds without a word from the holder after which the server takes the slot back; 0: never.
    silence_s: int = 0

    @property
    def namespace(self) -> int:
        """The first of the lock's two integers, signed 32-bit, the same for every process of ``scope``."""
        digest = hashlib.sha256(f"stage-e-slot:{self.scope}".encode()).digest()
        return int.from_bytes(digest[:4], "big", signed=True)


class HeldSlot(int):
    """The index of a held slot, which can be asked whether it is held still. Slot 0 is falsy: compare with None."""

    _connection: extensions.connection
    _namespace: int

    @classmethod
    def on(cls, connection: extensions.connection, namespace: int, index: int) -> HeldSlot:
        """Return slot ``index`` as held by ``connection``."""
        slot = cls(index)
        slot._connection = connection
        slot._namespace = namespace
        return slot

    def still_held(self) -> bool:
        """Ask the server, with a real statement, whether this session holds the slot."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute("EXECUTE slot_held (%s, %s)", (self._namespace % 2**32, int(self)))
                row = cursor.fetchone()
        except psycopg2.Error as error:
            logger.warning("slot %d is lost: %s", int(self), _first_line(error))
            return False
        return bool(row and row[0])


@contextlib.contextmanager
def try_acquire_dispatch_slot(settings: SlotSettings) -> Iterator[HeldSlot | None]:
    """Yield a slot that is held until the block ends, or None when all are taken. Never waits.

    Raises:
        SlotConnectionError: the server cannot be reached.
        TransactionPoolerError: the connection goes through a pooler.
    """
    connection = _connect(settings)
    try:
        slot = _take(connection, settings)
        if slot is None:
            yield None
            return
        try:
            yield slot
        finally:
            _release(connection, settings.namespace, slot)
    finally:
        with contextlib.suppress(psycopg2.Error):
            connection.close()


def probe(settings: SlotSettings) -> None:
    """Open the slot's connection once, to learn at start-up what a dispatch would learn later.

    Raises:
        SlotConnectionError: the server cannot be reached.
        TransactionPoolerError: the connection goes through a pooler.
    """
    with contextlib.closing(_connect(settings)) as connection, _fail_closed("broke"):
        refuse_pooler(connection)


def refuse_pooler(connection: extensions.connection) -> None:
    """Check that ``connection`` reaches its own server process.

    Raises:
        TransactionPoolerError: the process that greeted us is not the one that answers.
    """
    with connection.cursor() as cursor:
        for _ in range(2):
            cursor.execute("SELECT pg_backend_pid()")
            row = cursor.fetchone()
            if row is None or row[0] != connection.info.backend_pid:
                raise TransactionPoolerError(
                    "the dispatch slot's connection goes through a connection pooler, where a session lock cannot be"
                    " held: set STAGE_E_LOCK_DSN to the server's own address"
                )


def _connect(settings: SlotSettings) -> extensions.connection:
    with _fail_closed("cannot be opened"):
        connection: extensions.connection = psycopg2.connect(
            **{**settings.connect, "application_name": settings.application_name}
        )
    # A transaction left open would make the session idle in transaction, and a time-out would free the slot.
    connection.autocommit = True
    return connection


@contextlib.contextmanager
def _fail_closed(what: str) -> Iterator[None]:
    try:
        yield
    except psycopg2.Error as error:
        raise SlotConnectionError(f"the dispatch slot's connection {what}: {_first_line(error)}") from error


def _take(connection: extensions.connection, settings: SlotSettings) -> HeldSlot | None:
    with _fail_closed("broke"), connection.cursor() as cursor:
        refuse_pooler(connection)
        # One statement a slot: in a scan of all of them, the server may take every lock that it looks at.
        for index in range(settings.slots):
            cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", (settings.namespace, index))
            row = cursor.fetchone()
            if row is not None and row[0]:
                cursor.execute(_PREPARE_HELD)
                if settings.silence_s and connection.info.server_version >= _KNOWS_IDLE_SESSIONS:
                    cursor.execute("SET idle_session_timeout = %s", (f"{settings.silence_s}s",))
                return HeldSlot.on(connection, settings.namespace, index)
    return None


def _release(connection: extensions.connection, namespace: int, slot: HeldSlot) -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s, %s)", (namespace, int(slot)))
            row = cursor.fetchone()
    except psycopg2.Error as error:
        logger.warning("slot %d could not be released, closing its session: %s", int(slot), _first_line(error))
        return
    if row is None or not row[0]:
        logger.warning("slot %d was not held by its own connection when it was released", int(slot))


def _first_line(error: psycopg2.Error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
