"""How each shared budget stands, for whoever wants to know why images come slowly."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models.functions import Now

from cardpicker.models import FetchBudget
from cardpicker.stage_c.fetch.destinations import rate_per_s
from cardpicker.stage_c.fetch.limiter import DECAY_PER_S, PROBE_EVERY_S
from cardpicker.stage_c.settings import StageCSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """One destination, as it is asked at this moment."""

    destination: str
    set_per_s: float  #: The rate without any pressure.
    now_per_s: float
    widened_by: float  #: Factor on the interval between permits; 1 is none.
    is_probing: bool  #: Locked out: one fetch a minute, until one succeeds.
    next_permit_in_s: float
    pressed_at: datetime | None  #: When the destination last asked for patience, or refused us.
    last_retry_after_s: float | None  #: What it asked for then, where it said.


def read_budgets(settings: StageCSettings) -> list[Budget]:
    """Return the budgets that were ever drawn on, by the database's clock."""
    rows = FetchBudget.objects.annotate(read_at=Now()).order_by("destination")
    return [budget_of(row, row.read_at, settings) for row in rows]


def budget_of(row: FetchBudget, at: datetime, settings: StageCSettings) -> Budget:
    """Return how ``row`` stood at a moment of the database's clock."""
    widened_by = max(1.0, row.widening - DECAY_PER_S * max(0.0, (at - row.widened_at).total_seconds()))
    set_per_s = rate_per_s(row.destination, settings)
    return Budget(
        destination=row.destination,
        set_per_s=set_per_s,
        now_per_s=round(1 / PROBE_EVERY_S if row.is_probing else set_per_s / widened_by, 3),
        widened_by=round(widened_by, 2),
        is_probing=row.is_probing,
        next_permit_in_s=round(max(0.0, (row.next_permit_at - at).total_seconds()), 1),
        pressed_at=row.pressed_at,
        last_retry_after_s=row.last_retry_after_s,
    )
