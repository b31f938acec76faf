"""How a conveyor ends: by its last item, a close, an error, the end of its program, or a kill of its owner."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import psycopg2
import pytest
from django.conf import settings as site
from django.db import connection

from cardpicker.stage_c.conveyor import run
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import (
    PATIENCE_S,
    START_METHODS,
    compute_processes,
    fetch_threads,
    settings_for,
    to_payload,
    wait_until,
)

pytestmark = pytest.mark.parametrize("start_method", START_METHODS)
ROUNDS = 4
AT_ONCE = 4
LATEST_KILL_S = 0.8
GONE_WITHIN_S = 5.0
LOCK = 640_918


class Owner:
    """A conveyor's program in a session of its own, with a mark that all its processes inherit."""

    def __init__(self, *arguments: str) -> None:
        self.mark = f"CONVEYOR_OWNER={uuid.uuid4()}"
        name, value = self.mark.split("=")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cardpicker.tests.conveyor_owner", *arguments],
            cwd=site.BASE_DIR,
            env=os.environ | {name: value},
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )
        assert self.process.stdout is not None
        self.stdout = self.process.stdout

    def await_start(self) -> None:
        """Wait until it has its lock and is about to start its first process."""
        assert self.stdout.readline() == "ready\n"

    def left_over(self) -> list[str]:
        """Return what still runs with the mark."""
        name, value = self.mark.split("=")
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(name) == value and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(f"{process.pid} {process.status()} {process.cmdline()}")
        return found

    def is_gone(self) -> bool:
        """Whether nothing runs with the mark."""
        return not self.left_over()

    def kill(self) -> None:
        """End the owner as the kernel does when memory is short."""
        self.process.kill()
        self.process.wait()


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Path]:
    """A file without which no computation ends; made at the end, in case a test failed before."""
    gate = tmp_path / "gate"
    yield gate
    gate.touch()


def lock_dsn() -> str:
    """Return the test database for a program that has no settings."""
    parameters = connection.get_connection_params()
    names = ("host", "port", "user", "password", "dbname")
    return str(psycopg2.extensions.make_dsn(**{name: parameters[name] for name in names if parameters.get(name)}))


def takes_lock(rival: psycopg2.extensions.connection, lock: int) -> bool:
    """Try to take a lock, and keep it."""
    with rival.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [lock])
        return bool(cursor.fetchone() == (True,))


def assert_nothing_is_left(before: set[int]) -> None:
    """No process and no thread of a conveyor is alive now, not later."""
    assert compute_processes() <= before
    assert fetch_threads() == []


def test_nothing_is_left_after_the_last_item(start_method: str) -> None:
    """A run that was consumed to its end has no process and no thread."""
    before = compute_processes()

    assert len(list(run(range(10), to_payload, jobs.echo, settings=settings_for(start_method)))) == 10

    assert_nothing_is_left(before)


def test_an_early_end_says_nothing(start_method: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Processes that are not ready yet when all is done end without a word."""
    for _ in range(10):
        list(run([1], to_payload, jobs.echo, settings=settings_for(start_method, compute_workers=4)))

    assert capfd.readouterr() == ("", "")


def test_nothing_is_left_after_a_close_while_processes_work(start_method: str, gate: Path) -> None:
    """A close does not wait for what is being computed."""
    before = compute_processes()
    items = ["", str(gate), str(gate), str(gate)]
    results = run(items, to_payload, wait_if_told, settings=settings_for(start_method, compute_timeout_s=PATIENCE_S))
    next(results)
    assert compute_processes() > before

    started = time.monotonic()
    results.close()

    assert time.monotonic() - started < PATIENCE_S / 2
    assert_nothing_is_left(before)


def wait_if_told(body: bytes, context: str) -> bytes:
    """Work until the file ``context`` exists, if there is one to wait for."""
    return jobs.wait_for_file(body, context) if context else body


def test_nothing_is_left_after_the_consumers_error(start_method: str) -> None:
    """A consumer that fails to store takes the pools with it."""
    before = compute_processes()

    def consume() -> None:
        with contextlib.closing(run(range(100), to_payload, jobs.echo, settings=settings_for(start_method))) as results:
            for _ in results:
                raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        consume()

    assert_nothing_is_left(before)


@pytest.mark.parametrize("culprit", ["items", "should_stop", "on_tick"])
def test_nothing_is_left_after_a_callers_function_raised(start_method: str, culprit: str) -> None:
    """Whatever the caller lends to the line may fail; the error is the caller's to see."""
    before = compute_processes()

    def fail() -> bool:
        raise LookupError(culprit)

    def on_tick() -> None:
        if culprit == "on_tick":
            fail()

    def items() -> Iterator[float]:
        yield from (0.0, 0.0, 1.5 if culprit == "on_tick" else 0.0)
        if culprit == "items":
            fail()
        yield 0.0

    with pytest.raises(LookupError, match=culprit):
        list(
            run(
                items(),
                to_payload,
                jobs.take_time,
                settings=settings_for(start_method),
                should_stop=fail if culprit == "should_stop" else lambda: False,
                on_tick=on_tick,
            )
        )

    assert_nothing_is_left(before)


def test_a_run_costs_no_descriptor(start_method: str) -> None:
    """After many runs the process has as many open files as after the first."""
    settings = settings_for(start_method, tasks_per_worker=1)
    counts = []
    for _ in range(4):
        list(run(range(4), to_payload, jobs.echo, settings=settings))
        counts.append(psutil.Process().num_fds())

    assert counts[-1] <= counts[0]


def test_an_abandoned_line_does_not_keep_its_program_alive(start_method: str) -> None:
    """A generator that nobody closes ends with the interpreter."""
    owner = Owner(start_method, "abandon")
    try:
        owner.await_start()
        assert owner.stdout.readline() == "Computed\n"
        assert owner.process.wait(PATIENCE_S) == 0
        wait_until(owner.is_gone, "the end of its processes", GONE_WITHIN_S)
    finally:
        owner.kill()


@pytest.mark.django_db
def test_a_killed_owner_leaves_no_process_and_no_lock(start_method: str) -> None:
    """SIGKILL at any moment, the first instants included: all is gone and the lock is free within seconds."""
    chance = random.Random(start_method)
    with contextlib.closing(psycopg2.connect(lock_dsn())) as rival:
        rival.autocommit = True
        for number in range(ROUNDS):
            locks = range(LOCK + number * AT_ONCE, LOCK + (number + 1) * AT_ONCE)
            owners = [Owner(start_method, "work", lock_dsn(), str(lock)) for lock in locks]
            for owner, lock in zip(owners, locks, strict=True):
                owner.await_start()
                assert not takes_lock(rival, lock)
            for owner in owners:
                time.sleep(chance.uniform(0, LATEST_KILL_S / AT_ONCE))
                owner.kill()
            for owner, lock in zip(owners, locks, strict=True):
                wait_until(partial(takes_lock, rival, lock), "the lock", GONE_WITHIN_S)
                wait_until(owner.is_gone, "the end of its processes", GONE_WITHIN_S)


def test_a_killed_owner_takes_stuck_processes_along(start_method: str) -> None:
    """A process that cannot run a single instruction is ended all the same."""
    owner = Owner(start_method, "get stuck")
    try:
        owner.await_start()
        assert owner.stdout.readline() == "stuck\n"
        wait_until(lambda: any(psutil.STATUS_STOPPED in line for line in owner.left_over()), "a stopped process")
    finally:
        owner.kill()

    wait_until(owner.is_gone, "the end of its processes", GONE_WITHIN_S)


def test_a_killed_owner_takes_processes_along_that_miss_the_death_signal(start_method: str) -> None:
    """The signal can come before a process has asked for it; the end of the lifeline cannot."""
    owner = Owner(start_method, "go deaf")
    try:
        owner.await_start()
        assert owner.stdout.readline() == "deaf\n"
    finally:
        owner.kill()

    wait_until(owner.is_gone, "the end of its processes", GONE_WITHIN_S)
