"""What a cluster costs that has nothing to do: CPU and statements, with an empty queue and with much that is due but paused."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psutil
from django.db import connection

from cardpicker.models import CardWork
from cardpicker.stage_e.envelope import acknowledge_trip, pause
from scripts.ops.dispatching.bench import Bench, Figure, cpu_s
from scripts.ops.drill import processes
from scripts.ops.embedded.server import status

#: Until what a cluster does at its start is over, its first sweep included.
CALM_AFTER_S = 35.0
_STATEMENT = b"LOG:  statement: "
_CARDS = """
INSERT INTO cardpicker_card (source_id, identifier, name, name_key, card_type, extension, size, image_version,
    printing_tag_status, created_at)
SELECT (SELECT min(id) FROM cardpicker_source), 'idle ' || n, 'Idle', 'idle', 'CARD', 'jpg', 1, n::text, 'UNRESOLVED', now()
FROM generate_series(1, %s) AS n
"""


def measure(bench: Bench, window_s: float, due: int) -> Iterator[Figure]:
    """Watch an idle cluster for ``window_s`` seconds, and again with ``due`` cards that a pause keeps from it."""
    with connection.cursor() as cursor:
        # Of sessions that begin from now on; this one's are left out.
        name = connection.ops.quote_name(connection.settings_dict["NAME"])
        cursor.execute(f"ALTER DATABASE {name} SET log_statement = 'all'")
        cursor.execute("SET log_statement = 'none'")
    with bench.cluster() as cluster:
        yield from _watch(bench, cluster.pid, window_s, "nothing due")
        trip = pause("bench", "what does waiting cost?")
        with connection.cursor() as cursor:
            cursor.execute(_CARDS, [due])
        waiting = CardWork.objects.filter(due_at__isnull=False).count()
        yield from _watch(bench, cluster.pid, window_s, f"{waiting:,} due, paused")
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER DATABASE {name} RESET log_statement")
        idle = "SELECT id FROM cardpicker_card WHERE name = 'Idle'"
        cursor.execute(f"DELETE FROM cardpicker_cardwork WHERE card_id IN ({idle})")
        cursor.execute(f"DELETE FROM cardpicker_card WHERE id IN ({idle})")
    acknowledge_trip(trip.pk, "measured", "bench")


def _watch(bench: Bench, main_pid: int, window_s: float, name: str) -> Iterator[Figure]:
    server = status(bench.rig.database.place)
    assert server is not None
    time.sleep(CALM_AFTER_S)
    began = time.monotonic()
    cluster, database = _cpu_s(main_pid), _cpu_s(server.pid)
    log = bench.rig.database.place.log
    logged = log.stat().st_size
    time.sleep(window_s)
    minutes = (time.monotonic() - began) / 60
    with log.open("rb") as lines:
        lines.seek(logged)
        statements = lines.read().count(_STATEMENT)
    for what, value, unit in (
        ("cluster", (_cpu_s(main_pid) - cluster) / minutes, "CPU s a minute"),
        ("PostgreSQL", (_cpu_s(server.pid) - database) / minutes, "CPU s a minute"),
        ("statements", statements / minutes, "a minute"),
    ):
        yield Figure(part="idle", name=f"{name}: {what}", value=value, unit=unit)


def _cpu_s(pid: int) -> float:
    """Return the CPU of a process and all below it, the dead included."""
    top = psutil.Process(pid)
    return cpu_s([top, *(child for child in top.children(recursive=True) if processes.alive(child))])
