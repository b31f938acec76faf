"""Hosts of their own for tests of the dispatch slot, and a session that sees who holds what."""

from __future__ import annotations

import contextlib
import dataclasses
import uuid
from collections.abc import Iterator
from typing import Any

import psycopg2
from django.conf import settings
from psycopg2 import extensions

from cardpicker.stage_e.concurrency import SlotSettings
from cardpicker.stage_e.dispatch import slot_settings


def new_host() -> SlotSettings:
    """Return the settings of a host that nobody else is, with one slot, on the tests' server."""
    return dataclasses.replace(slot_settings(settings.STAGE_E), slots=1, scope=f"host-{uuid.uuid4()}")


@contextlib.contextmanager
def watching(host: SlotSettings) -> Iterator[Server]:
    """Have a session, opened as a slot's is, that only looks."""
    with contextlib.closing(psycopg2.connect(**host.connect)) as session:
        session.autocommit = True
        yield Server(session)


class Server:
    """What the server says of slots and of the sessions that hold them."""

    def __init__(self, session: extensions.connection) -> None:
        self.session = session

    def ask(self, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        with self.session.cursor() as cursor:
            cursor.execute(sql, parameters)
            return cursor.fetchall()

    def holders(self, settings: SlotSettings) -> list[int]:
        """Return the backend pids that hold slots of ``settings``, in the order of the slots."""
        rows = self.ask(
            "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND classid::bigint = %s AND granted ORDER BY objid",
            settings.namespace % 2**32,
        )
        return [row[0] for row in rows]
