"""What a dispatch can come to: a closed set that every driver matches exhaustively."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import assert_never


class DispatchStatus(StrEnum):
    """How one call of ``dispatch_micro_batch`` ended."""

    DISABLED = "disabled"
    HALTED_OPEN_TRIP = "halted-open-trip"
    THROTTLED = "throttled-concurrency-cap"
    HALTED_NEW_TRIP = "halted-new-trip"
    EMPTY = "empty"
    COMPLETED = "completed"
    COMPLETED_WITH_TRIP = "completed-with-trip"
    INTERRUPTED = "interrupted"


class ExitCode(IntEnum):
    """Why a command stopped."""

    DONE = 0
    WRONG_USE = 1
    ENVELOPE = 3
    THROTTLED_OUT = 4
    LIMIT_REACHED = 5
    DISABLED = 6
    VERIFICATION_FAILED = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchOutcome:
    """One dispatch: its status, and what it did if it got to work."""

    status: DispatchStatus
    run_id: str
    batch_size: int = 0
    elapsed_s: float = 0.0
    trip_id: int | None = None
    detail: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


def exit_code_for(status: DispatchStatus) -> ExitCode:
    """Return the exit code of a command that stopped on ``status``."""
    match status:
        case DispatchStatus.COMPLETED | DispatchStatus.EMPTY:
            return ExitCode.DONE
        case DispatchStatus.HALTED_OPEN_TRIP | DispatchStatus.HALTED_NEW_TRIP | DispatchStatus.COMPLETED_WITH_TRIP:
            return ExitCode.ENVELOPE
        case DispatchStatus.THROTTLED | DispatchStatus.INTERRUPTED:
            return ExitCode.THROTTLED_OUT
        case DispatchStatus.DISABLED:
            return ExitCode.DISABLED
        case _:
            assert_never(status)
