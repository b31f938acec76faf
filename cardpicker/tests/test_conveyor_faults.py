"""What one bad item costs: itself."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import psutil
import pytest

from cardpicker.stage_c.conveyor import ComputeCrashed, Computed, ComputeFailed, run
from cardpicker.tests import conveyor_jobs as jobs
from cardpicker.tests.conveyor_rig import START_METHODS, outcomes, settings_for, to_payload

pytestmark = pytest.mark.parametrize("start_method", START_METHODS)


def misfortune_or_meeting(body: bytes, context: str | tuple[str, int]) -> object:
    """Do as told, or meet the other processes."""
    return jobs.misbehave(body, context) if isinstance(context, str) else jobs.meet(body, context)


@pytest.mark.parametrize(
    ("misfortune", "detail"),
    [
        ("kill", "was ended by SIGKILL"),
        ("leave", "ended with exit code 7"),
        ("stop", "ran longer than 1 s"),
        ("hang", "ran longer than 1 s"),
    ],
)
def test_a_lost_process_costs_its_own_item_and_is_replaced(
    start_method: str, misfortune: str, detail: str, tmp_path: Path
) -> None:
    """Of twenty items the fourth takes its process with it: nineteen succeed, the last by processes that met."""
    # The last two succeed only in two processes at the same time.
    items: list[str | tuple[str, int]] = ["well"] * 3 + [misfortune] + ["well"] * 14 + [(str(tmp_path), 2)] * 2
    limit_s = 1.0 if misfortune in ("stop", "hang") else 60.0
    settings = settings_for(start_method, compute_timeout_s=limit_s)

    found = outcomes(items, misfortune_or_meeting, settings)

    crashed = [number for number, outcome in enumerate(found) if isinstance(outcome, ComputeCrashed)]
    assert crashed == [3]
    assert isinstance(found[3], ComputeCrashed)
    assert detail in found[3].detail
    assert sum(isinstance(outcome, Computed) for outcome in found) == 19


@pytest.mark.parametrize(
    ("trait", "detail"),
    [
        ("unpicklable error", "UnpicklableError: holds a handle"),
        ("two-argument error", "TwoArgumentError: trouble at home"),
        ("speechless error", "SpeechlessError: (its message cannot be shown)"),
        ("unpicklable value", "TypeError: cannot pickle"),
        ("value that does not unpickle", "the result does not unpickle: TypeError"),
    ],
)
def test_what_cannot_cross_the_boundary_is_a_failure_of_its_item(start_method: str, trait: str, detail: str) -> None:
    """The process survives, and says in text what went wrong."""
    before, failed, after = outcomes(
        ["well", trait, "well"], jobs.misbehave, settings_for(start_method, compute_workers=1)
    )

    assert isinstance(failed, ComputeFailed)
    assert failed.detail.startswith(detail)
    assert isinstance(before, Computed)
    assert before == after


def test_a_context_that_does_not_cross_is_a_failure_of_its_item(start_method: str) -> None:
    """Neither a context that does not pickle nor one that does not unpickle harms the process."""
    contexts = ["well", lambda: None, jobs.TwoArgumentError("trouble", "home"), "well"]
    before, unpicklable, refusing, after = outcomes(
        contexts, jobs.misbehave, settings_for(start_method, compute_workers=1)
    )

    assert isinstance(unpicklable, ComputeFailed)
    assert isinstance(refusing, ComputeFailed)
    assert isinstance(before, Computed)
    assert before == after


def test_an_answer_larger_than_any_buffer_arrives(start_method: str) -> None:
    """Both directions carry more than a socket holds."""
    body = os.urandom(5_000_000)
    (found,) = run([body], to_payload, jobs.echo, settings=settings_for(start_method))

    assert isinstance(found.outcome, Computed)
    assert found.outcome.value[1] == body


def test_processes_killed_while_idle_cost_nothing(start_method: str) -> None:
    """Whoever kills the processes between two items loses at most the items handed to them."""
    results = run(range(12), to_payload, jobs.echo, settings=settings_for(start_method, queue_depth=1))
    found = []
    for result in results:
        found.append(result.outcome)
        if isinstance(result.outcome, Computed) and len(found) == 4:
            with contextlib.suppress(ProcessLookupError):
                os.kill(result.outcome.value[2], signal.SIGKILL)

    assert len(found) == 12
    assert sum(isinstance(outcome, ComputeCrashed) for outcome in found) <= 1


def test_a_killed_fork_server_costs_what_was_in_flight(start_method: str) -> None:
    """The processes end with their fork server, and a new one takes over."""
    if start_method == "fork":
        pytest.skip("not possible here: fork has no server")
    found = []
    for result in run(range(20), to_payload, jobs.echo, settings=settings_for(start_method)):
        found.append(result.outcome)
        if isinstance(result.outcome, Computed) and len(found) == 1:
            psutil.Process(result.outcome.value[2]).parent().kill()  # type: ignore[union-attr]

    assert len(found) == 20
    assert sum(isinstance(outcome, ComputeCrashed) for outcome in found) <= 4
    assert isinstance(found[-1], Computed)
