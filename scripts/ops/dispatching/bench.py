"""What the figures are taken on: the drill's database, images and server, and real clusters that come and go."""

from __future__ import annotations

import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import psutil

from scripts.ops.drill import invariants, processes
from scripts.ops.drill.catalog import Catalog
from scripts.ops.drill.cluster import Cluster
from scripts.ops.drill.rig import Rig

SAMPLES = 16
PATIENCE_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured value, and what was promised of it."""

    part: str
    name: str
    value: float | str
    unit: str = ""
    promise: str = ""
    is_kept: bool = True


class Bench:
    """The rig, a catalog of real images, and what is asked of them again and again."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.catalog = Catalog(rig.images, rig.web.url, SAMPLES)
        self._rng = random.Random(1)
        self._clusters = 0

    def save(self, cards: int, *, local: bool = False) -> list[int]:
        """Save so many new cards in one transaction; ``local`` ones wait for no server's permit."""
        return self.catalog.add_cards(cards, self._rng, local=local)

    @contextlib.contextmanager
    def cluster(self, **changes: str) -> Iterator[Cluster]:
        """Have a real cluster that has started all its processes, until the block ends."""
        self._clusters += 1
        cluster = Cluster(self.rig.folder / f"cluster-{self._clusters}.log", {**os.environ, **changes})
        cluster.supervise()
        workers = int(changes.get("Q_WORKERS", "2"))
        try:
            # Beside the workers, the sentinel has a pusher and a monitor.
            wait_for(lambda: len(processes.workers_of(cluster.pid, [])[1]) >= workers + 2, "the cluster to start")
            yield cluster
        finally:
            cluster.kill()

    def settle(self) -> float:
        """Wait until nothing is due and no run is open; return the seconds."""
        return wait_for(invariants.is_settled, "all cards to settle")


def wait_for(condition: Callable[[], object], what: str, within_s: float = PATIENCE_S, every_s: float = 0.02) -> float:
    """Wait until ``condition`` holds; return the seconds.

    Raises:
        TimeoutError: it does not.
    """
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within_s:
            raise TimeoutError(f"waited {within_s:g} s for {what}")
        time.sleep(every_s)
    return time.monotonic() - began


def in_words(states: Mapping[str, int]) -> str:
    """Return how many cards are in each state, states without one left out."""
    return ", ".join(f"{count} {state}" for state, count in states.items() if count)


def cpu_s(found: list[psutil.Process]) -> float:
    """Return the CPU seconds of processes, and of children that they have reaped, so far."""
    total = 0.0
    for process in found:
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
