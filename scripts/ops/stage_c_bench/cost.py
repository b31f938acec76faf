"""What a stage of the bench cost: CPU and OCR calls by card, the clock, and whose CPU it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, median, quantiles

HEADINGS = (
    *("stage", "cards", "refused", "CPU s median", "mean", "p90", "calls median", "mean", "max", "cards/s"),
    *("parent ms", "compute ms", "database ms", "server ms", "others' cores"),
)


@dataclass(slots=True, kw_only=True)
class Cost:
    """One stage's costs; what was not measured stays empty."""

    stage: str
    cpu_s: list[float] = field(default_factory=list)  #: Of reading each image.
    calls: list[int] = field(default_factory=list)  #: OCR calls of each image that was read.
    refused: int = 0
    cards: int = 0
    wall_s: float = 0.0
    shares_s: Mapping[str, float] = field(default_factory=dict)  #: CPU by role: parent, compute, database, server.
    others_cores: float = 0.0  #: What everything else on this host used meanwhile.

    @property
    def cards_per_s(self) -> float:
        """Cards by the clock; 0 when no clock ran."""
        return self.cards / self.wall_s if self.wall_s else 0.0

    @property
    def mean_s(self) -> float:
        """Mean CPU seconds of reading an image."""
        return mean(self.cpu_s) if self.cpu_s else 0.0

    def figures(self) -> dict[str, float]:
        """Return the figures, by the names that they have in JSON."""
        found: dict[str, float] = {"cards": self.cards, "refused": self.refused}
        if self.cpu_s:
            found |= {"cpu_s_median": median(self.cpu_s), "cpu_s_mean": self.mean_s, "cpu_s_p90": tail(self.cpu_s)}
        if self.calls:
            found |= {"calls_median": median(self.calls), "calls_mean": mean(self.calls), "calls_max": max(self.calls)}
            found["calls_p90"] = tail(self.calls)
        if self.wall_s:
            found |= {"wall_s": self.wall_s, "cards_per_s": self.cards_per_s, "others_cores": self.others_cores}
            found |= {f"{role}_cpu_ms": 1000 * seconds / self.cards for role, seconds in self.shares_s.items()}
        return {name: round(value, 4) for name, value in found.items()}

    def row(self) -> list[str]:
        """Return the line of the table, in the order of ``HEADINGS``."""
        found = self.figures()
        layout = (
            *(("cpu_s_median", 3), ("cpu_s_mean", 3), ("cpu_s_p90", 3)),
            *(("calls_median", 1), ("calls_mean", 1), ("calls_max", 0), ("cards_per_s", 2)),
            *(("parent_cpu_ms", 1), ("compute_cpu_ms", 1), ("database_cpu_ms", 1), ("server_cpu_ms", 1)),
            ("others_cores", 2),
        )
        cells = ["" if name not in found else f"{found[name]:.{digits}f}" for name, digits in layout]
        return [self.stage, f"{self.cards:,}", str(self.refused), *cells]


def tail(values: Sequence[float]) -> float:
    """Return the ninetieth percentile."""
    return quantiles(values, n=10)[-1] if len(values) > 1 else values[0]


def ratios(costs: Mapping[str, Cost], cores: int) -> dict[str, float]:
    """Return what the stages are worth against each other, as far as they ran.

    ``conveyor_share`` is the conveyor's speed over cores ÷ CPU of a card as one process alone reads it;
    ``conveyor_share_busy`` takes the CPU that a card costs while all cores are busy, which is more where cores share
    their units. What ends in ``_undisturbed`` counts only the cores that others left free; on a quiet host it is the same.
    """
    found: dict[str, float] = {}
    floor, alone, bare, conveyor, dispatch = (
        costs.get(name) for name in ("floor", "compute", "bare loops", "conveyor", "dispatch")
    )
    if floor and alone:
        found["compute_to_floor_median"] = median(alone.cpu_s) / median(floor.cpu_s)
        found["compute_to_floor_mean"] = alone.mean_s / floor.mean_s
    if conveyor:
        left = cores - conveyor.others_cores
        found["conveyor_share_busy"] = conveyor.cards_per_s * conveyor.mean_s / cores
        found["conveyor_share_busy_undisturbed"] = conveyor.cards_per_s * conveyor.mean_s / left
        if alone:
            found["conveyor_share"] = conveyor.cards_per_s * alone.mean_s / cores
            found["conveyor_share_undisturbed"] = conveyor.cards_per_s * alone.mean_s / left
        if bare:
            found["conveyor_to_bare_loops"] = conveyor.cards_per_s / bare.cards_per_s
        if dispatch:
            found["dispatch_to_conveyor"] = dispatch.cards_per_s / conveyor.cards_per_s
            undisturbed = dispatch.cards_per_s / (cores - dispatch.others_cores) / (conveyor.cards_per_s / left)
            found["dispatch_to_conveyor_undisturbed"] = undisturbed
    return {name: round(value, 3) for name, value in found.items()}
