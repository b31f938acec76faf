"""How compute processes start, fail to start, and are replaced."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cardpicker.stage_c.conveyor import Computed, ConveyorOutcome, Payload, WorkerInitError, run
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import (
    START_METHODS,
    compute_processes,
    fetch_threads,
    outcomes,
    settings_for,
    to_payload,
)

pytestmark = pytest.mark.parametrize("start_method", START_METHODS)


@pytest.fixture
def noise(tmp_path: Path) -> Iterator[logging.Logger]:
    """Threads that log as fast as they can, so that a fork finds the logger's locks taken."""
    logger = logging.getLogger("conveyor.drill")
    handler = logging.FileHandler(tmp_path / "log")
    logger.addHandler(handler)
    logger.propagate = False
    over = threading.Event()

    def log() -> None:
        while not over.is_set():
            logger.warning("noise")

    threads = [threading.Thread(target=log, name=f"noise-{number}") for number in range(2)]
    for thread in threads:
        thread.start()
    yield logger
    over.set()
    for thread in threads:
        thread.join()
    logger.removeHandler(handler)
    handler.close()


def values(found: list[ConveyorOutcome]) -> list[object]:
    """Return the values, all of which must have been computed."""
    assert all(isinstance(outcome, Computed) for outcome in found), found
    return [outcome.value for outcome in found if isinstance(outcome, Computed)]


def test_an_initializer_that_raises_says_so(start_method: str) -> None:
    """The error names what went wrong, and nothing is left over."""
    before = compute_processes()
    with pytest.raises(WorkerInitError, match="RuntimeError: no OCR engine here"):
        outcomes([1, 2, 3], jobs.echo, settings_for(start_method), initializer=jobs.initialize_badly)

    assert compute_processes() <= before
    assert fetch_threads() == []


def test_an_initializer_that_kills_is_tried_a_few_times(start_method: str, tmp_path: Path) -> None:
    """Processes that die at their start end the run after a bounded number of tries."""
    before = compute_processes()
    with pytest.raises(WorkerInitError, match="ended by SIGKILL"):
        outcomes(
            list(range(100)),
            jobs.echo,
            settings_for(start_method),
            initializer=jobs.die_at_start,
            initargs=(str(tmp_path),),
        )

    assert 1 <= len(list(tmp_path.iterdir())) <= 5
    assert compute_processes() <= before
    assert fetch_threads() == []


def test_a_process_that_never_gets_ready_is_replaced(start_method: str, tmp_path: Path) -> None:
    """A process stuck at its start costs its time limit and nothing else."""
    found = outcomes(
        [1, 2, 3],
        jobs.echo,
        settings_for(start_method, compute_workers=1, start_timeout_s=3.0),
        initializer=jobs.stop_at_first_start,
        initargs=(str(tmp_path),),
    )

    assert len(values(found)) == 3


def test_processes_that_never_get_ready_are_an_error(start_method: str) -> None:
    """When no process gets ready in time the run says so."""
    with pytest.raises(WorkerInitError, match=r"not ready after 0\.5 s"):
        outcomes(
            [1], jobs.echo, settings_for(start_method, start_timeout_s=0.5), initializer=time.sleep, initargs=(60.0,)
        )


def test_an_initializer_that_cannot_be_loaded_says_so(start_method: str) -> None:
    """Arguments that do not unpickle in the process are reported, not died of."""
    with pytest.raises(WorkerInitError, match="TypeError"):
        outcomes(
            [1],
            jobs.echo,
            settings_for(start_method),
            initializer=jobs.die_at_start,
            initargs=(jobs.TwoArgumentError("trouble", "home"),),
        )


def test_processes_are_replaced_after_their_tasks(start_method: str) -> None:
    """Sixty items by processes of five each take at least twelve, and none is lost."""
    found = outcomes(list(range(60)), jobs.echo, settings_for(start_method, tasks_per_worker=5, fetch_threads=3))

    echoes = [value for value in values(found) if isinstance(value, tuple)]
    assert [context for _, context, _ in echoes] == list(range(60))
    assert len({pid for _, _, pid in echoes}) >= 12


def test_a_process_that_grew_is_replaced(start_method: str) -> None:
    """Memory above the limit ends a process after its item, not before."""
    settings = settings_for(start_method, compute_workers=1, worker_rss_mb=250)

    pids = values(outcomes([0, 0, 300, 0, 0], jobs.grow, settings))

    assert pids[0] == pids[1] == pids[2] != pids[3] == pids[4]


def test_memory_shared_with_the_parent_replaces_no_process(start_method: str) -> None:
    """A large parent does not make its forked children look large."""
    ballast = b"x" * (400 << 20)
    settings = settings_for(start_method, compute_workers=1, worker_rss_mb=350)

    pids = values(outcomes([0] * 4, jobs.grow, settings))

    assert len(ballast) == 400 << 20
    assert len(set(pids)) == 1


def test_threads_that_log_do_not_lock_a_new_process_up(start_method: str, noise: logging.Logger) -> None:
    """Pools made beside busy threads start each time, and their processes can log."""
    for _ in range(30 if start_method == "fork" else 3):
        settings = settings_for(start_method, compute_timeout_s=20.0)
        assert values(outcomes([1, 2, 3], jobs.log_a_line, settings)) == [b"image"] * 3


def test_fetch_threads_that_log_do_not_lock_a_replacement_up(start_method: str, tmp_path: Path) -> None:
    """Processes replaced in mid-run come from a moment without fetches."""
    logger = logging.getLogger("conveyor.drill")
    handler = logging.FileHandler(tmp_path / "log")
    logger.addHandler(handler)
    logger.propagate = False

    def fetch(item: int) -> Payload:
        for _ in range(50):
            logger.warning("fetching")
        return to_payload(item)

    settings = settings_for(start_method, tasks_per_worker=2, fetch_threads=4, queue_depth=8)
    try:
        found = [result.outcome for result in run(range(60), fetch, jobs.log_a_line, settings=settings)]
    finally:
        logger.removeHandler(handler)
        handler.close()

    assert values(found) == [b"image"] * 60


def test_a_task_that_does_not_pickle_is_refused_before_anything_starts(
    start_method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that no process could import is the caller's error."""
    local: Callable[[bytes, object], object] = lambda body, context: body  # noqa: E731
    before = compute_processes()

    with pytest.raises((AttributeError, TypeError), match="pickle"):
        outcomes([1], local, settings_for(start_method))

    assert compute_processes() <= before
