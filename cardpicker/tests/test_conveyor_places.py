"""Where a conveyor runs: a plain program, any thread, a child process, beside another conveyor."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import pytest
from django.conf import settings as site

from cardpicker.stage_c.conveyor import Computed, ConveyorOutcome
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import PATIENCE_S, START_METHODS, outcomes, run_owner, settings_for

pytestmark = pytest.mark.parametrize("start_method", START_METHODS)


def count_computed(found: list[ConveyorOutcome]) -> int:
    """Return how many were computed."""
    return sum(isinstance(outcome, Computed) for outcome in found)


def run_in_child(start_method: str, answers: SimpleQueue[int]) -> None:
    """Run ten items and say how many were computed."""
    answers.put(count_computed(outcomes(list(range(10)), jobs.echo, settings_for(start_method))))


def test_in_a_plain_program(start_method: str) -> None:
    """A program that knows no Django runs one, and says nothing on its error output."""
    done = run_owner(start_method, "count")

    assert (done.returncode, done.stdout, done.stderr) == (0, "ready\n10\n", "")


def run_script(folder: Path, settings: str) -> subprocess.CompletedProcess[str]:
    """Run three items in a script of its own, outside the project's folder."""
    script = folder / "script.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(site.BASE_DIR)!r})\n"
        "from cardpicker.stage_c.conveyor import ConveyorSettings, Payload, WorkerInitError, run\n"
        "def compute(body, context):\n"
        "    return len(body)\n"
        "def fetch(item):\n"
        "    return Payload(body=b'image')\n"
        "if __name__ == '__main__':\n"
        f"    settings = ConveyorSettings({settings})\n"
        "    try:\n"
        "        print([result.outcome.value for result in run(range(3), fetch, compute, settings=settings)])\n"
        "    except WorkerInitError as error:\n"
        "        print(error)\n"
    )
    return subprocess.run(
        [sys.executable, script], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def test_in_a_script_whose_functions_are_its_own(start_method: str, tmp_path: Path) -> None:
    """Compute may be defined in the script that runs it, from any folder."""
    done = run_script(tmp_path, f"start_method={start_method!r}, compute_workers=1")

    assert (done.returncode, done.stdout, done.stderr) == (0, "[5, 5, 5]\n", "")


def test_a_preload_that_breaks_the_fork_server_is_an_error(start_method: str, tmp_path: Path) -> None:
    """A fork server that dies at its start is reported after a few tries; fork preloads nothing."""
    (tmp_path / "broken.py").write_text("raise RuntimeError('broken')\n")

    done = run_script(tmp_path, f"start_method={start_method!r}, preload=('broken',)")

    assert done.returncode == 0
    if start_method == "fork":
        assert done.stdout == "[5, 5, 5]\n"
    else:
        assert done.stdout.startswith("a compute process could not be started: ")
        assert "RuntimeError: broken" in done.stderr


def test_in_threads_two_at_once(start_method: str) -> None:
    """Two lines in two threads of one process do not disturb each other."""
    counts: list[int] = []

    def work() -> None:
        counts.append(count_computed(outcomes(list(range(20)), jobs.echo, settings_for(start_method))))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert counts == [20, 20]


def test_in_a_child_of_a_process_that_ran_one(start_method: str) -> None:
    """A forked child does not trip over its parent's fork server."""
    assert count_computed(outcomes([1], jobs.echo, settings_for(start_method))) == 1
    context = multiprocessing.get_context("fork")
    answers: SimpleQueue[int] = context.SimpleQueue()
    child = context.Process(target=run_in_child, args=(start_method, answers), daemon=False)

    child.start()
    child.join(PATIENCE_S)

    assert child.exitcode == 0
    assert answers.get() == 10
