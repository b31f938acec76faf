"""What a compute process has of its parent: nothing that it could harm."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from cardpicker.stage_c.conveyor import Computed
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import START_METHODS, outcomes, settings_for

pytestmark = pytest.mark.parametrize("start_method", START_METHODS)
LOCK = 640_917


@pytest.fixture
def slot() -> Iterator[Any]:
    """A connection of its own that holds an advisory lock, which forked children inherit."""
    slot = connection.get_new_connection(connection.get_connection_params())
    slot.autocommit = True
    with slot.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    jobs.INHERITED.append(slot)
    yield slot
    jobs.INHERITED.clear()
    slot.close()


def surroundings(start_method: str, **changes: Any) -> dict[str, Any]:
    """Return what one process found."""
    settings = settings_for(start_method, compute_workers=1, **changes)
    (found,) = outcomes([None], jobs.describe_surroundings, settings)
    assert isinstance(found, Computed)
    assert isinstance(found.value, dict)
    return found.value


def holds_its_lock(slot: Any) -> bool:
    """Ask the slot's own session whether it still has the lock."""
    with slot.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND pid = pg_backend_pid()",
            [LOCK],
        )
        return bool(cursor.fetchone() == (1,))


def backend_pid() -> int:
    """Return the number of the server's process behind Django's connection."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@pytest.mark.django_db
def test_a_process_holds_no_socket_but_its_own_two(start_method: str, slot: Any) -> None:
    """Not a listening socket, not a pair, not a database connection."""
    backend_pid()
    with socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_UNIX) as unix:
        unix.bind(f"\0conveyor-{os.getpid()}")
        one, other = socket.socketpair()
        with one, other:
            found = surroundings(start_method)

    assert found["sockets"] == 2
    assert found["open connections"] == 0
    if start_method == "forkserver":
        assert found["pipes"] == 0


@pytest.mark.django_db
def test_the_parents_lock_and_connection_survive(start_method: str, slot: Any) -> None:
    """Children end, the parent's sessions stay: nobody said goodbye in their name."""
    before = backend_pid()

    outcomes(list(range(20)), jobs.echo, settings_for(start_method, tasks_per_worker=3))

    assert holds_its_lock(slot)
    assert backend_pid() == before


@pytest.mark.django_db
def test_even_a_child_that_closes_the_connection_does_no_harm(start_method: str, slot: Any, tmp_path: Path) -> None:
    """A close in the child reaches neither the server nor a file that the child opened since."""
    before = backend_pid()
    target = str(tmp_path / "file")

    assert outcomes([target], jobs.close_inherited, settings_for(start_method)) == [Computed(value=True)]

    assert holds_its_lock(slot)
    assert backend_pid() == before


def test_a_late_close_of_an_inherited_socket_spares_the_childs_files(start_method: str, tmp_path: Path) -> None:
    """A descriptor's number is not given to another file while an inherited object believes it is its own."""
    jobs.INHERITED.extend(socket.socketpair())
    try:
        found = outcomes([str(tmp_path / "file")], jobs.close_inherited, settings_for(start_method))
    finally:
        for inherited in jobs.INHERITED:
            inherited.close()
        jobs.INHERITED.clear()

    assert found == [Computed(value=True)]


def test_native_threads_are_pinned_before_compute_is_imported(start_method: str) -> None:
    """Libraries read their limit when they load; only a fork has them loaded already."""
    found = surroundings(start_method)

    assert found["threads"] == {"OMP_THREAD_LIMIT": "1", "OPENBLAS_NUM_THREADS": "1"}
    if start_method == "forkserver":
        assert found["threads at import"] == "1"


def test_the_parent_keeps_its_native_threads(start_method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is the children's."""
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")

    assert surroundings(start_method)["threads"]["OPENBLAS_NUM_THREADS"] == "1"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "5"


def test_processes_stand_back_as_far_as_they_are_told(start_method: str) -> None:
    """They are niced, their owner is not; and never less than their owner."""
    before = os.nice(0)

    assert surroundings(start_method, niceness=18)["niceness"] == max(before, 18)
    assert surroundings(start_method)["niceness"] == os.nice(0) == before


def test_signals_are_reset(start_method: str) -> None:
    """Ctrl-C is the owner's affair, TERM ends the process, and the owner's handlers and mask stay with the owner."""
    handler = signal.signal(signal.SIGUSR1, lambda number, frame: None)
    term = signal.signal(signal.SIGTERM, lambda number, frame: None)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        found = surroundings(start_method)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGTERM, term)
        signal.signal(signal.SIGUSR1, handler)

    assert found["SIGINT"]
    assert found["SIGTERM"]
    assert found["SIGUSR1"]
    assert found["blocked"] == []


def test_a_default_socket_timeout_does_not_end_idle_processes(start_method: str, tmp_path: Path) -> None:
    """A timeout that some library set for the whole process is not one for the channel."""
    socket.setdefaulttimeout(0.05)
    try:
        settings = settings_for(start_method, compute_workers=2)
        found = outcomes([0.3, 0.0, 0.3, 0.0], jobs.pid_after, settings)
    finally:
        socket.setdefaulttimeout(None)

    assert all(isinstance(outcome, Computed) for outcome in found)
    assert len({outcome.value for outcome in found if isinstance(outcome, Computed)}) <= 2
