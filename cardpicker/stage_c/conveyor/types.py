"""What goes into a conveyor and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

I = TypeVar("I")  # noqa: E741


class WorkerInitError(RuntimeError):
    """No compute process could be made ready; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConveyorSettings:
    """Sizes and clocks of the two pools of one run."""

    fetch_threads: int = 3  #: Concurrent fetches; I/O-bound.
    compute_workers: int = 3  #: Compute processes; CPU-bound.
    queue_depth: int = 6  #: Items held at once between the start of a fetch and a stored result.
    start_method: str = "forkserver"  #: ``forkserver`` or ``fork``.
    preload: tuple[str, ...] = ()  #: Modules that the fork server imports once for all its children.
    start_timeout_s: float = 60.0  #: Time a process may take to make itself ready before another is tried.
    compute_timeout_s: float = 60.0  #: One item's time before its process is killed.
    tasks_per_worker: int = 500  #: Items after which a process is replaced.
    worker_rss_mb: int = 400  #: Memory, shared pages by their share, above which a process is replaced after an item.
    niceness: int = 0  #: Of the compute processes, or their owner's if that is more: who answers people goes first.
    stop_grace_s: float = 2.0  #: Time between asking a process to end and killing it.


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What ``fetch`` returns when there is something to compute."""

    body: bytes
    context: Any = None  #: Passed to ``compute`` as it is; must pickle.


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """``compute`` returned ``value``."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class NotComputed:
    """``fetch`` returned ``value``, which is no payload."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeFailed:
    """``compute`` raised."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeCrashed:
    """The process died or overran its time on this item."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRaised:
    """``fetch`` raised."""

    detail: str


ConveyorOutcome = Computed | NotComputed | ComputeFailed | ComputeCrashed | FetchRaised


@dataclass(frozen=True, slots=True, kw_only=True)
class Conveyed(Generic[I]):
    """One item and what became of it."""

    item: I
    outcome: ConveyorOutcome
    fetch_s: float
    compute_s: float


def describe(error: BaseException) -> str:
    """Return an exception as one short line of text, which crosses any process boundary."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "(its message cannot be shown)"
    return f"{type(error).__name__}: {text}"[:500]
