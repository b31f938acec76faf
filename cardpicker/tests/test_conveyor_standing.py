"""Compute processes that outlive a run: used again, replaced when dead, gone with their owner."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import psutil
import pytest
from django.conf import settings as site

from cardpicker.stage_c.conveyor import ComputeCrashed, Computed, StandingPool, WorkerInitError, run
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import (
    START_METHODS,
    compute_processes,
    outcomes,
    settings_for,
    to_payload,
    wait_until,
)

pytestmark = pytest.mark.parametrize("start_method", START_METHODS)


@pytest.fixture
def standing() -> Iterator[StandingPool]:
    """A pool whose processes end with the test."""
    pool = StandingPool()
    yield pool
    pool.close()


def pids(standing: StandingPool, start_method: str, **arguments: Any) -> set[int]:
    """Return the processes that computed a few items."""
    found = outcomes([0.05] * 6, jobs.pid_after, settings_for(start_method), standing=standing, **arguments)
    return {outcome.value for outcome in found if isinstance(outcome, Computed)}


def test_a_second_run_uses_the_same_processes(standing: StandingPool, start_method: str) -> None:
    """Nothing is started, nothing is made ready again."""
    first = pids(standing, start_method)
    there = compute_processes()

    assert pids(standing, start_method) | first <= there
    assert compute_processes() == there


def test_other_work_gets_other_processes(standing: StandingPool, start_method: str) -> None:
    """What was loaded for one task is not used for another."""
    first = pids(standing, start_method)
    second = pids(standing, start_method, initializer=jobs.echo, initargs=(b"", None))

    assert not first & second
    wait_until(lambda: not first & compute_processes(), "the first processes to end")


def test_a_process_that_died_between_runs_is_replaced(standing: StandingPool, start_method: str) -> None:
    """Its death costs no item."""
    doomed = pids(standing, start_method).pop()
    os.kill(doomed, signal.SIGKILL)
    # Reaped is more than dead: only then have all its threads let go of its channel.
    wait_until(lambda: doomed not in {child.pid for child in multiprocessing.active_children()}, "the process to die")

    found = outcomes([0.0] * 6, jobs.pid_after, settings_for(start_method), standing=standing)

    assert all(isinstance(outcome, Computed) for outcome in found)


def test_a_crash_leaves_a_sound_pool(standing: StandingPool, start_method: str) -> None:
    """The guilty item's process is replaced within the run; the next run finds a whole pool."""
    found = outcomes(["kill", None], jobs.misbehave, settings_for(start_method), standing=standing)
    again = outcomes([None] * 4, jobs.misbehave, settings_for(start_method), standing=standing)

    assert isinstance(found[0], ComputeCrashed)
    assert all(isinstance(outcome, Computed) for outcome in again)


def test_a_closed_run_ends_what_is_busy_only(standing: StandingPool, start_method: str) -> None:
    """A consumer that has enough does not wait for what it will not take."""
    pids(standing, start_method)
    results = run([0.0, 60.0], to_payload, jobs.pid_after, settings=settings_for(start_method), standing=standing)
    next(results)
    results.close()

    assert len(pids(standing, start_method)) >= 1


def test_a_run_within_a_run_has_processes_of_its_own(standing: StandingPool, start_method: str) -> None:
    """They are gone when it ends."""
    outer = run([0.0, 0.0], to_payload, jobs.pid_after, settings=settings_for(start_method), standing=standing)
    next(outer)
    before = compute_processes()
    inner = outcomes([0.0], jobs.pid_after, settings_for(start_method), standing=standing)

    assert isinstance(inner[0], Computed) and inner[0].value not in before
    wait_until(lambda: compute_processes() <= before, "the inner processes to end")
    outer.close()


def test_a_failed_start_leaves_nothing_behind(standing: StandingPool, start_method: str) -> None:
    """The next run starts afresh."""
    with pytest.raises(WorkerInitError):
        outcomes(
            [0.0], jobs.pid_after, settings_for(start_method), standing=standing, initializer=jobs.initialize_badly
        )

    assert len(pids(standing, start_method)) >= 1


OWNER = """
import sys, time
from cardpicker.stage_c.conveyor import StandingPool, run
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import settings_for, to_payload
if __name__ == "__main__":
    pool = StandingPool()
    results = run([0.1] * 4, to_payload, jobs.pid_after, settings=settings_for(sys.argv[1]), standing=pool)
    print(*{result.outcome.value for result in results}, flush=True)
    time.sleep(600)
"""


def test_idle_processes_end_with_their_owner(start_method: str) -> None:
    """A SIGKILL between two runs leaves nobody behind."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, start_method], cwd=site.BASE_DIR, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    family = [psutil.Process(int(pid)) for pid in owner.stdout.readline().split()]
    owner.kill()
    owner.wait()

    wait_until(lambda: not any(process.is_running() for process in family), "the processes to end", 5.0)
    assert len(family) == 2
