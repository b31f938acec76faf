"""A pause with every slot at work: when the last fetch and the last computation end, what is lost, and how work resumes."""

from __future__ import annotations

import time
from collections.abc import Iterator

from django_q.tasks import async_task

from cardpicker.models import CardWork, ImageEvidence, PilotRunLedger, RunStatus
from cardpicker.operations.admin.work import STATES
from cardpicker.stage_e.envelope import acknowledge_trip, pause
from cardpicker.stage_e.requests import DISPATCH_TASK
from scripts.ops.dispatching.bench import Bench, Figure, cpu_s, in_words, wait_for
from scripts.ops.drill import processes

TASKS = 4
QUIET_S = 5.0  #: Promised.
QUIET_FOR_S = 4.0
RESTARTED_FOR_S = 15.0
#: Less CPU than this between two looks is a heartbeat, not an image.
COMPUTING_S = 0.02
#: Each computes for itself: with one process a task, no more compute than this host has cores twice over.
CHANGES = {
    "Q_WORKERS": str(TASKS),
    "STAGE_E_MAX_CONCURRENT_DISPATCHES": str(TASKS),
    "STAGE_C_COMPUTE_WORKERS": "1",
}


def measure(bench: Bench, cards: int) -> Iterator[Figure]:
    """Pause with four tasks running and ``cards`` queued; restart the cluster; acknowledge; let it end."""
    evidence = ImageEvidence.objects.count()
    with bench.cluster(**CHANGES) as cluster:
        saved = bench.save(cards)
        for _ in range(TASKS):
            async_task(DISPATCH_TASK, None, "bench")
        wait_for(lambda: _running() == TASKS and ImageEvidence.objects.count() - evidence > 2 * TASKS, "four runs")
        trip = pause("bench", "how soon is it quiet?")
        fetched_s, computed_s, ended_s = _last_signs(bench, cluster.pid)
    yield Figure(part="pause", name="tasks running, cards queued", value=f"{TASKS}, {len(set(saved))}")
    for name, value in (("last fetch", fetched_s), ("last computation", computed_s)):
        yield Figure(
            part="pause",
            name=f"from the pause to the {name}",
            value=value,
            unit="s",
            promise=f"at most {QUIET_S:g}",
            is_kept=value <= QUIET_S,
        )
    yield Figure(part="pause", name="from the pause to the end of the last run", value=ended_s, unit="s")
    yield from _standing(saved)
    with bench.cluster(**CHANGES) as cluster:
        yield from _restarted(bench, cluster.pid)
        yield from _resumed(bench, trip.pk)
    left = CardWork.objects.filter(card__in=saved).exclude(**STATES["done"]).count()
    yield _none("cards that are not done in the end", left)


def _last_signs(bench: Bench, main_pid: int) -> tuple[float, float, float]:
    """Return how long after now the last image was fetched, the last one computed, the last run ended."""
    began = time.monotonic()
    fetched_s = computed_s = ended_s = 0.0
    bench.rig.reads.take()
    cpu = _computed_s(main_pid)
    while time.monotonic() - began < max(fetched_s, computed_s, ended_s) + QUIET_FOR_S:
        time.sleep(0.05)
        passed = time.monotonic() - began
        fetched_s = passed if bench.rig.reads.take() else fetched_s
        before, cpu = cpu, _computed_s(main_pid)
        computed_s = passed if cpu - before > COMPUTING_S else computed_s
        ended_s = passed if _running() else ended_s
    return fetched_s, computed_s, ended_s


def _standing(saved: list[int]) -> Iterator[Figure]:
    work = CardWork.objects.filter(card__in=saved)
    states = {state: work.filter(**condition).count() for state, condition in STATES.items()}
    yield Figure(part="pause", name="cards while paused", value=in_words(states))
    yield _none(
        "cards that are missing, or leased by nobody", len(set(saved)) - sum(states.values()) + states["leased"]
    )
    yield _none("due cards that lost an attempt", work.filter(**STATES["due"], attempts__gt=0).count())


def _none(name: str, count: int) -> Figure:
    return Figure(part="pause", name=name, value=count, promise="0", is_kept=not count)


def _restarted(bench: Bench, main_pid: int) -> Iterator[Figure]:
    """A cluster that starts while dispatch is paused does nothing."""
    runs, cpu = PilotRunLedger.objects.count(), _computed_s(main_pid)
    bench.rig.reads.take()
    time.sleep(RESTARTED_FOR_S)
    begun, read = PilotRunLedger.objects.count() - runs, sum(bench.rig.reads.take().values())
    spent_s = _computed_s(main_pid) - cpu
    yield Figure(
        part="pause",
        name=f"restarted while paused, {RESTARTED_FOR_S:.0f} s long",
        value=f"{begun} runs, {read} fetches, {spent_s:.1f} s of computing",
        promise="nothing",
        is_kept=not begun and not read and spent_s < COMPUTING_S,
    )


def _resumed(bench: Bench, trip_id: int) -> Iterator[Figure]:
    evidence = ImageEvidence.objects.count()
    acknowledge_trip(trip_id, "measured", "bench")
    began = time.monotonic()
    wait_for(_running, "a run after the acknowledgment")
    yield Figure(part="pause", name="acknowledged until a run began", value=time.monotonic() - began, unit="s")
    wait_for(lambda: ImageEvidence.objects.count() > evidence, "evidence after the acknowledgment")
    yield Figure(part="pause", name="acknowledged until evidence was stored", value=time.monotonic() - began, unit="s")
    bench.settle()
    yield Figure(part="pause", name="acknowledged until all is settled", value=time.monotonic() - began, unit="s")


def _running() -> int:
    return PilotRunLedger.objects.filter(status=RunStatus.RUNNING).count()


def _computed_s(main_pid: int) -> float:
    _, workers = processes.workers_of(main_pid, [])
    return sum(cpu_s(processes.pool_children_of(worker.pid)) for worker in workers)
