"""Two pools in a row: threads that fetch, processes that compute, with few items in flight and results in order.

Imports nothing of this project outside this package: ``fetch`` and ``compute`` are the caller's. One coordinating thread
(the caller's) owns both pools; each process has a channel of its own, so a process that dies costs exactly the item it
held. Processes hold no socket but their channel and lifeline, and end when the coordinating process does, however it ends.
"""

from __future__ import annotations

from .line import run
from .standing import StandingPool
from .types import (
    ComputeCrashed,
    Computed,
    ComputeFailed,
    Conveyed,
    ConveyorOutcome,
    ConveyorSettings,
    FetchRaised,
    NotComputed,
    Payload,
    WorkerInitError,
)

__all__ = [
    "ComputeCrashed",
    "ComputeFailed",
    "Computed",
    "Conveyed",
    "ConveyorOutcome",
    "ConveyorSettings",
    "FetchRaised",
    "NotComputed",
    "Payload",
    "StandingPool",
    "WorkerInitError",
    "run",
]
