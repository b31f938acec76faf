"""Holding workers in the middle of storing evidence: the statement has reached the server and waits there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg2
from django.db import connection

from cardpicker.models import ImageEvidence
from cardpicker.tests.slot_watch import slots_of


@contextlib.contextmanager
def evidence_locked() -> Iterator[None]:
    """Let nobody store evidence until the block ends."""
    with contextlib.closing(psycopg2.connect(**slots_of("").connect)) as session, session, session.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {ImageEvidence._meta.db_table} IN SHARE ROW EXCLUSIVE MODE")
        yield


def waits_to_store(address: str) -> bool:
    """Whether a session from that address waits for the lock on evidence."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)"
            " WHERE NOT granted AND relation = %s::regclass AND client_addr = %s)",
            [ImageEvidence._meta.db_table, address],
        )
        row = cursor.fetchone()
    return bool(row and row[0])
