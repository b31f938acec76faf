"""What is done to a running system: each fault finds its target, hurts it, and says what is to be undone and when."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
from collections.abc import Callable, Collection
from dataclasses import dataclass

from django.db import DatabaseError, OperationalError, connection

from scripts.ops.drill import processes
from scripts.ops.drill.image_server import Mode
from scripts.ops.drill.rig import Rig

DISK_FULL = "disk of PostgreSQL full"
LOG_SEGMENTS = 100  #: More than a server keeps ready.
Strike = Callable[[Rig, random.Random], "Blow | None"]
#: Sessions are found by the port of their client, since a server knows no process of another host.
_TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND {which}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """A fault that was done."""

    hit: str
    undo: Callable[[], None] | None = None
    undo_after_s: float = 0.0
    afterwards: Callable[[], None] = lambda: None  #: What an operator does until all is settled, once it is undone.


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that can happen at any moment."""

    name: str
    strike: Strike  #: None: there is no such target now.
    workers_hit: int  #: Batches that it can interrupt.
    needs_batch: bool  #: Whether its target exists only while a batch runs.
    comes_early: bool = False  #: Whether it says nothing unless most of the work is ahead.


def all_faults(*, with_disk: bool) -> list[Fault]:
    """Return every fault that can be done here."""
    disk = (
        [Fault(name=DISK_FULL, strike=_fill_disk, workers_hit=5, needs_batch=True, comes_early=True)]
        if with_disk
        else []
    )
    return [*_process_faults(), *_session_faults(), *_server_faults(), *_web_faults(), *disk]


def choose(rounds: int, seed: int, only: str = "", *, with_disk: bool = False) -> list[Fault]:
    """Return a fault for each round: all of them in a random order, then all again, so that none is left out by chance.

    Args:
        only: a regular expression that the names of the faults contain.
        with_disk: whether the database has a disk of its own that can be filled.
    """
    faults = [fault for fault in all_faults(with_disk=with_disk) if re.search(only, fault.name, re.IGNORECASE)]
    rng = random.Random(seed)
    laps = -(-rounds // len(faults)) if faults else 0
    return [fault for _ in range(laps) for fault in rng.sample(faults, len(faults))][:rounds]


def busy_pids() -> list[int]:
    """Return the processes whose batches run now."""
    from cardpicker.models import PilotRunLedger, RunStatus  # can be imported only once Django is set up

    try:
        return list(PilotRunLedger.objects.filter(status=RunStatus.RUNNING).values_list("pid", flat=True))
    except OperationalError:
        connection.close()
        return []


def _process_faults() -> list[Fault]:
    targets: list[tuple[str, Callable[[Rig, random.Random], int | None], int, bool]] = [
        ("main", lambda rig, _: rig.cluster.pid or None, 2, False),
        ("sentinel", _sentinel, 2, False),
        ("busy worker", _busy_worker, 1, True),
        ("bystander", _bystander, 2, False),
        ("pool child", _pool_child, 1, True),
        ("fork server", _fork_server, 1, True),
    ]
    return [
        Fault(name=f"{signum.name} {what}", strike=_signaller(signum, find), workers_hit=hit, needs_batch=needs)
        for what, find, hit, needs in targets
        for signum in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP)
    ]


def _signaller(signum: signal.Signals, find: Callable[[Rig, random.Random], int | None]) -> Strike:
    def strike(rig: Rig, rng: random.Random) -> Blow | None:
        pid = find(rig, rng)
        if pid is None:
            return None
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            return None
        if signum is not signal.SIGSTOP:
            return Blow(hit=f"process {pid}")
        return Blow(hit=f"process {pid}", undo=lambda: _continue(pid), undo_after_s=rig.clocks.stop_s)

    return strike


def _continue(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _sentinel(rig: Rig, _: random.Random) -> int | None:
    found = processes.sentinel_of(rig.cluster.pid)
    return found.pid if found is not None else None


def _busy_worker(rig: Rig, rng: random.Random) -> int | None:
    busy, _ = processes.workers_of(rig.cluster.pid, busy_pids())
    return rng.choice(busy).pid if busy else None


def _bystander(rig: Rig, rng: random.Random) -> int | None:
    """An idle worker, the pusher or the monitor."""
    _, others = processes.workers_of(rig.cluster.pid, busy_pids())
    return rng.choice(others).pid if others else None


def _pool_child(rig: Rig, rng: random.Random) -> int | None:
    worker = _busy_worker(rig, rng)
    children = processes.pool_children_of(worker) if worker is not None else []
    return rng.choice(children).pid if children else None


def _fork_server(rig: Rig, rng: random.Random) -> int | None:
    worker = _busy_worker(rig, rng)
    server = processes.fork_server_of(worker) if worker is not None else None
    return server.pid if server is not None else None


def _session_faults() -> list[Fault]:
    return [
        Fault(name="terminate slot", strike=_terminate_slot, workers_hit=1, needs_batch=True),
        Fault(name="terminate worker session", strike=_terminate_worker, workers_hit=1, needs_batch=True),
        Fault(name="terminate all sessions", strike=_terminate_all, workers_hit=2, needs_batch=False),
    ]


def _terminate_slot(_: Rig, rng: random.Random) -> Blow | None:
    held = "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory') AND application_name = 'cardpicker-slot'"
    return _terminate(f"pid = (SELECT min(pid) FROM pg_stat_activity WHERE {held})")


def _terminate_worker(rig: Rig, rng: random.Random) -> Blow | None:
    worker = _busy_worker(rig, rng)
    ports = processes.local_ports(worker) if worker is not None else set()
    return (
        _terminate("application_name = 'cardpicker' AND client_port = ANY(%(ports)s)", sorted(ports)) if ports else None
    )


def _terminate_all(_: Rig, rng: random.Random) -> Blow | None:
    return _terminate("true")


def _terminate(which: str, ports: Collection[int] = ()) -> Blow | None:
    with connection.cursor() as cursor:
        cursor.execute(_TERMINATE.format(which=which), {"ports": list(ports)})
        ended = cursor.fetchone()[0]
    return Blow(hit=f"{ended} sessions") if ended else None


def _server_faults() -> list[Fault]:
    return [
        Fault(name="PostgreSQL restarted", strike=_restart, workers_hit=2, needs_batch=False),
        Fault(name="PostgreSQL killed", strike=_kill_server, workers_hit=2, needs_batch=False),
        Fault(name="PostgreSQL stopped", strike=_stop_server, workers_hit=2, needs_batch=False),
    ]


def _restart(rig: Rig, _: random.Random) -> Blow:
    rig.database.stop()
    rig.database.start()
    return Blow(hit="server")


def _kill_server(rig: Rig, _: random.Random) -> Blow:
    rig.database.kill()
    rig.database.start()
    return Blow(hit="server")


def _stop_server(rig: Rig, _: random.Random) -> Blow:
    rig.database.stop()
    return Blow(hit="server", undo=rig.database.start, undo_after_s=rig.clocks.stop_s)


def _fill_disk(rig: Rig, rng: random.Random) -> Blow | None:
    """Fill the database's disk; an operator makes room, and starts the server if it has given up.

    A table that cannot grow is an error of its statement. Where the write-ahead log cannot grow either, the server ends.
    """
    disk = rig.disk
    if disk is None:
        return None

    def make_room() -> None:
        disk.clear()
        rig.database.start()

    disk.fill()
    log_too = rng.random() < 0.5
    if log_too:
        _use_up_log()
    return Blow(hit="tables and log" if log_too else "tables", undo=make_room, undo_after_s=rig.clocks.stop_s)


def _use_up_log() -> None:
    """Have the server begin new segments of its log until there is no room for one."""
    with contextlib.suppress(DatabaseError), connection.cursor() as cursor:
        for _ in range(LOG_SEGMENTS):
            cursor.execute("SELECT txid_current()")
            cursor.execute("SELECT pg_switch_wal()")


def _web_faults() -> list[Fault]:
    # Every image that the server gives away in vain is read again.
    return [
        Fault(name=f"image server {mode.name.lower()}", strike=_misbehave(mode), workers_hit=5, needs_batch=False)
        for mode in Mode
        if mode is not Mode.WELL
    ]


def _misbehave(mode: Mode) -> Strike:
    def strike(rig: Rig, _: random.Random) -> Blow:
        rig.web.behave(mode)
        return Blow(
            hit=f"server: {mode}",
            undo=lambda: rig.web.behave(Mode.WELL),
            undo_after_s=rig.clocks.stop_s,
            afterwards=_acknowledge_lockouts if mode is Mode.REFUSING else lambda: None,
        )

    return strike


def _acknowledge_lockouts() -> None:
    """Let dispatch resume, as an operator does who has found out why the server refused."""
    from cardpicker.models import EnvelopeBar, EnvelopeTrip
    from cardpicker.stage_e.envelope import acknowledge_trip

    for trip in EnvelopeTrip.objects.filter(bar=EnvelopeBar.GOOGLE_LOCKOUT, acknowledged_at__isnull=True):
        acknowledge_trip(trip.pk, "the drill's image server refused on purpose", "crash drill")
