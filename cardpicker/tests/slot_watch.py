"""A watch on dispatch slots while others run: how many are held at once, and whether anybody ever waited for one."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Iterator

import psycopg2
from django.conf import settings

from cardpicker.stage_e.concurrency import SlotSettings, try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import slot_settings
from cardpicker.tests.cluster import eventually

INTERVAL_S = 0.02
_LOOK = """
SELECT count(*) FILTER (WHERE granted), count(*) FILTER (WHERE NOT granted) FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %s
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclasses.dataclass(slots=True)
class SlotWatch:
    """What was seen of one host's slots."""

    most: int = 0
    waited: int = 0
    looks: int = 0


def slots_of(host_id: str) -> SlotSettings:
    """Return where the slots of the host with that id are."""
    return dataclasses.replace(slot_settings(settings.STAGE_E), scope=host_id)


@contextlib.contextmanager
def watched_slots(*hosts: str) -> Iterator[dict[str, SlotWatch]]:
    """Look at the slots of hosts again and again until the block ends."""
    seen = {host: SlotWatch() for host in hosts}
    ended = threading.Event()
    # Taken here, since it belongs to this thread's connection.
    connect = dict(slots_of("").connect)
    namespaces = {host: slots_of(host).namespace % 2**32 for host in hosts}

    def look() -> None:
        with contextlib.closing(psycopg2.connect(**connect)) as session:
            session.autocommit = True
            with session.cursor() as cursor:
                while not ended.wait(INTERVAL_S):
                    for host, watch in seen.items():
                        cursor.execute(_LOOK, [namespaces[host]])
                        row = cursor.fetchone()
                        assert row is not None
                        watch.most, watch.waited = max(watch.most, row[0]), watch.waited + row[1]
                        watch.looks += 1

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def moment_slot_is_free(host_id: str) -> float:
    """Wait until somebody else gets the one slot of a host, and return that moment."""
    one = dataclasses.replace(slots_of(host_id), slots=1)

    def is_free() -> bool:
        with try_acquire_dispatch_slot(one) as slot:
            return slot is not None

    eventually(is_free, f"the slot of {host_id}")
    return time.monotonic()
