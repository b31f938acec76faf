"""This process and what it started, as the kernel sees them: CPU by role, and memory as it goes.

CPU is counted whole also for processes that have ended, through those that reaped them. Memory is the proportional set
size: pages that processes share count once in the tree. Pages of files, such as libraries, are also shared with whatever
else the host runs from the same files, and the kernel drops them when idle: their share comes and goes with others' work.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

SAMPLE_S = 1.0
_MB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The tree's memory at a moment."""

    at: float  #: On the monotonic clock.
    parent_mb: float = 0.0  #: What this process took for itself.
    compute_mb: float = 0.0  #: What the processes took that it started.
    files_mb: float = 0.0  #: Pages of files, of all of them.
    largest_mb: float = 0.0  #: Resident memory of the largest process, its shared pages whole.

    @property
    def tree_mb(self) -> float:
        """All of it."""
        return self.parent_mb + self.compute_mb + self.files_mb

    @property
    def own_mb(self) -> float:
        """What the processes took for themselves."""
        return self.parent_mb + self.compute_mb


@dataclass(slots=True, kw_only=True)
class Family:
    """Who is who below this process: what other roles do is told apart, wherever their processes hang."""

    roles: dict[str, int] = field(default_factory=dict)  #: Role to the process that everything of it descends from.

    def cpu_s(self) -> dict[str, float]:
        """Return the CPU seconds so far, by role; ``parent`` is this process, ``compute`` what else it started."""
        me = psutil.Process()
        found = {"parent": time.process_time(), "compute": 0.0}
        below = {role: {pid, *_descendants(pid)} for role, pid in self.roles.items()}
        for role, pids in below.items():
            found[role] = sum(_cpu_s(pid) for pid in pids)
        apart = set().union(*below.values()) if below else set()
        found["compute"] = sum(_cpu_s(pid) for pid in _descendants(me.pid) if pid not in apart)
        return found

    def sample(self) -> Sample:
        """Measure the memory of this process and its compute processes."""
        me = os.getpid()
        apart = {each for pid in self.roles.values() for each in (pid, *_descendants(pid))}
        found = {pid: _memory_mb(pid) for pid in (me, *_descendants(me)) if pid not in apart}
        return Sample(
            at=time.monotonic(),
            parent_mb=found[me].own,
            compute_mb=sum(memory.own for pid, memory in found.items() if pid != me),
            files_mb=sum(memory.files for memory in found.values()),
            largest_mb=max(memory.resident for memory in found.values()),
        )


@dataclass(slots=True, kw_only=True)
class Watched:
    """What a watched block used."""

    wall_s: float = 0.0
    shares_s: dict[str, float] = field(default_factory=dict)
    others_cores: float = 0.0
    samples: list[Sample] = field(default_factory=list)

    @property
    def peak_tree_mb(self) -> float:
        """The most that the tree held at once."""
        return max((sample.tree_mb for sample in self.samples), default=0.0)

    @property
    def peak_process_mb(self) -> float:
        """The most that one process held."""
        return max((sample.largest_mb for sample in self.samples), default=0.0)

    def between(self, start: float, end: float, measure: str) -> float:
        """Return the median of one of the samples' figures in a span of the monotonic clock; processes come and go in it."""
        inside: list[float] = [getattr(sample, measure) for sample in self.samples if start <= sample.at <= end]
        return median(inside) if inside else 0.0


@contextmanager
def watched(family: Family) -> Iterator[Watched]:
    """Watch CPU and memory for the length of the block; the figures are there after it."""
    found, over = Watched(), threading.Event()
    watching_s = 0.0

    def keep_sampling() -> None:
        nonlocal watching_s
        while not over.wait(SAMPLE_S):
            found.samples.append(family.sample())
        watching_s = time.thread_time()

    thread = threading.Thread(target=keep_sampling, daemon=True, name="memory")
    before, host_before, started = family.cpu_s(), _host_busy_s(), time.monotonic()
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()
        found.samples.append(family.sample())
        found.wall_s = time.monotonic() - started
        after = family.cpu_s()
        found.shares_s = {role: max(0.0, after[role] - before.get(role, 0.0)) for role in after}
        others_s = _host_busy_s() - host_before - sum(found.shares_s.values())
        # To watch is no part of what is watched.
        found.shares_s["parent"] = max(0.0, found.shares_s["parent"] - watching_s)
        found.others_cores = max(0.0, others_s / found.wall_s)


class _Memory(NamedTuple):
    own: float = 0.0
    files: float = 0.0
    resident: float = 0.0


def _memory_mb(pid: int) -> _Memory:
    """Return what a process takes, nothing of one that has ended; without the kernel's word for it all is its own."""
    try:
        resident = psutil.Process(pid).memory_info().rss / _MB
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except psutil.Error:
        return _Memory()
    except OSError:
        return _Memory(own=resident, resident=resident)
    kb = {line.split(":")[0]: int(line.split()[1]) for line in rollup.splitlines()[1:]}
    return _Memory(own=kb["Pss_Anon"] / 1024, files=(kb["Pss"] - kb["Pss_Anon"]) / 1024, resident=resident)


def _descendants(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []


def _cpu_s(pid: int) -> float:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.Error:
        return 0.0
    # Of the ended children only what was reaped is known, which here is all but the last few.
    return float(times.user + times.system + times.children_user + times.children_system)


def _host_busy_s() -> float:
    times = psutil.cpu_times()
    # Time that the host gave to other machines is not ours either.
    return float(sum(getattr(times, kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq", "steal")))
