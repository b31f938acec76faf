"""One round: fresh work, a fault at a random moment, and then everything that a supervisor and cron would do until all is settled."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from django.db import connection

from scripts.ops.drill import audit, invariants
from scripts.ops.drill.catalog import Catalog, Result, results
from scripts.ops.drill.faults import Blow, Fault, busy_pids
from scripts.ops.drill.rig import BATCH, Rig

LATEST_MOMENT_S = 5.0
TARGET_PATIENCE_S = 15.0
CALM_AFTER_S = 15.0  #: What a fault leaves behind must be gone so long after all is settled.
POLL_S = 0.1


@dataclass(slots=True, kw_only=True)
class Round:
    """What a round came to."""

    fault: str
    moment_s: float
    hit: str = ""
    settled_s: float = 0.0
    recovered_s: float = 0.0  #: Until the cluster had done new work without the sweep.
    rereads: int = 0
    violations: list[str] = field(default_factory=list)


def measure(rig: Rig, catalog: Catalog) -> dict[str, Result]:
    """Let the cluster read each sample undisturbed; return what each comes to.

    Raises:
        RuntimeError: it does not, so nothing could be compared with it.
    """
    cards = catalog.add_samples()
    if not _within(rig.clocks.settle_s, invariants.is_settled, rig.cluster.supervise):
        raise RuntimeError(f"the undisturbed run does not settle: {invariants.unsettled()}")
    rig.reads.take()
    found = results(cards)
    if set(found) != set(cards):
        raise RuntimeError("the undisturbed run read no evidence off some samples")
    return {catalog.shows[card]: result for card, result in found.items()}


def play(rig: Rig, catalog: Catalog, expected: Mapping[str, Result], fault: Fault, seed: int, cards: int) -> Round:
    """Play one round; what it draws depends on ``seed`` alone."""
    rng = random.Random(seed)
    moment_s = rng.uniform(0, LATEST_MOMENT_S)
    done = Round(fault=fault.name, moment_s=moment_s)
    audit.forget()
    rig.reads.take()
    tracebacks = rig.cron.tracebacks()
    work = catalog.make_work(cards, rng)
    blow = _strike(rig, fault, rng, moment_s)
    done.hit = blow.hit if blow is not None else "no target"
    started = time.monotonic()
    settled = _settle(rig, blow)
    done.settled_s = time.monotonic() - started
    if not settled:
        done.violations.append(f"not settled within {rig.clocks.settle_s:g} s: {invariants.unsettled()}")
    done.violations += _check(rig)
    done.violations += invariants.wrong_cards(work, catalog, expected)
    done.rereads = sum(count - 1 for count in rig.reads.take().values() if count > 1)
    if done.rereads >= BATCH * fault.workers_hit:
        done.violations.append(f"{done.rereads} images were read again, for {fault.workers_hit} batches of {BATCH}")
    if rig.cron.tracebacks() > tracebacks:
        done.violations.append("a sweep showed a traceback")
    done.recovered_s = _recover(rig, catalog, rng, done.violations)
    return done


def _strike(rig: Rig, fault: Fault, rng: random.Random, moment_s: float) -> Blow | None:
    if fault.needs_batch:
        _within(TARGET_PATIENCE_S, lambda: bool(busy_pids()), rig.cluster.supervise)
        # A batch takes a few seconds, of which the moment shall be one.
        moment_s *= 0.1 if fault.comes_early else 0.5
    time.sleep(moment_s)
    found: list[Blow] = []

    def try_it() -> bool:
        blow = fault.strike(rig, rng)
        found.extend([blow] if blow is not None else [])
        return bool(found)

    _within(TARGET_PATIENCE_S, try_it, lambda: None)
    connection.close()
    return found[0] if found else None


def _settle(rig: Rig, blow: Blow | None) -> bool:
    """Supervise, sweep and undo until all is settled; False when that takes too long."""
    rig.cron.postpone()
    struck = time.monotonic()
    undone = blow is None or blow.undo is None

    def tend() -> None:
        nonlocal undone
        if blow is not None and blow.undo is not None and not undone and time.monotonic() - struck >= blow.undo_after_s:
            blow.undo()
            undone = True
        if blow is not None and undone:
            blow.afterwards()
        rig.cluster.supervise()
        rig.cron.tick()

    settled = _within(rig.clocks.settle_s, lambda: undone and invariants.is_settled(), tend)
    return rig.cron.finish(rig.clocks.settle_s) and settled


def _check(rig: Rig) -> Iterator[str]:
    """Yield what does not hold; what needs a moment to be put right is given one."""
    for check in (
        invariants.momentary_lies,
        lambda: invariants.slots_held_by_nobody(rig),
        lambda: invariants.orphans(rig),
    ):
        _within(CALM_AFTER_S, lambda check=check: not list(check()), rig.cluster.supervise)  # type: ignore[misc]
        yield from check()
    yield from invariants.open_trips()
    yield from invariants.not_unique()


def _recover(rig: Rig, catalog: Catalog, rng: random.Random, violations: list[str]) -> float:
    """Let the cluster do one more card without the sweep: one that is wedged would go unnoticed behind cron."""
    started = time.monotonic()
    card = catalog.make_work(1, rng)
    if not _within(rig.clocks.recover_s, invariants.is_settled, rig.cluster.supervise):
        violations.append(f"the cluster does no work within {rig.clocks.recover_s:g} s without the sweep")
        rig.cluster.kill()
        _settle(rig, None)
    elapsed_s = time.monotonic() - started
    if not results(card):
        violations.append(f"card {card[0]} has no evidence")
    return elapsed_s


def _within(seconds: float, condition: Callable[[], bool], meanwhile: Callable[[], None]) -> bool:
    deadline = time.monotonic() + seconds
    while True:
        meanwhile()
        if condition():
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
