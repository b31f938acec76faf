"""What a card's way over the conveyor means for the card: its image arrived and says something, or it did not come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from cardpicker.stage_c import conveyor
from cardpicker.stage_c.departures import Flight
from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.outcomes import Crashed, Deferred, Failed, FetchOutcome, Unusable, UnusableKind

_ENGINE_GONE = "OcrUnavailableError"  #: Crosses the process boundary as the start of a text.


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrived:
    """The image's bytes came, and this is what they are."""

    outcome: CardEvidence | Unusable | Crashed


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """No image came."""

    outcome: FetchOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineGone:
    """The image's bytes came, and nothing is known of them for want of an OCR engine."""

    detail: str


def read_result(result: conveyor.Conveyed[Flight]) -> Arrived | Missed | EngineGone | None:
    """Return what came of a flight, None when it was put off."""
    match result.outcome:
        case conveyor.Computed(value=CardEvidence() as evidence):
            return Arrived(outcome=evidence)
        case conveyor.Computed(value=Unusable() as unusable):
            return _unusable(result.item, unusable)
        case conveyor.Computed(value=other):
            return Arrived(outcome=Crashed(detail=f"the extraction returned a {type(other).__name__}"))
        case conveyor.ComputeFailed(detail=detail) if detail.startswith(_ENGINE_GONE):
            return EngineGone(detail=detail)
        case conveyor.ComputeFailed(detail=detail) | conveyor.ComputeCrashed(detail=detail):
            return Arrived(outcome=Crashed(detail=detail))
        case conveyor.NotComputed(value=Deferred()):
            return None
        case conveyor.NotComputed(value=missed):
            return Missed(outcome=missed)
        case conveyor.FetchRaised(detail=detail):
            return Missed(outcome=Failed(detail=detail))
        case _:
            assert_never(result.outcome)


def _unusable(flight: Flight, unusable: Unusable) -> Arrived | Missed:
    if unusable.kind is UnusableKind.TRUNCATED and flight.may_arrive_whole:
        return Missed(outcome=Failed(detail=f"short body: {unusable.detail}"))
    # A rendition is not the listed file, which may be sound: it is no image that came.
    return Missed(outcome=unusable) if flight.asked_dpi else Arrived(outcome=unusable)
