"""What a sync did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cardpicker.sources.kinds import ListingProblem

_NAMED_MAX = 200


@dataclass(slots=True, kw_only=True)
class SyncReport:
    """Counts of cards; ``listed`` is the sum of new, changed, unchanged and returned."""

    new: int = 0
    changed: int = 0  #: Another image, or other facts about the same one, such as its name.
    unchanged: int = 0
    returned: int = 0
    removed: int = 0
    held: int = 0  #: Missing from the listing, but too many to believe without a confirmation.
    problems: int = 0
    named: list[str] = field(default_factory=list)  #: The first of the problems.
    notes: list[str] = field(default_factory=list)  #: What the listing said of itself.

    @property
    def listed(self) -> int:
        """Cards that the source has now."""
        return self.new + self.changed + self.unchanged + self.returned

    def note(self, problem: ListingProblem) -> None:
        """Count a problem, and name it while there is room."""
        self.problems += 1
        if len(self.named) < _NAMED_MAX:
            self.named.append(str(problem))

    def counts(self) -> Iterator[tuple[str, int]]:
        """Yield each count with its name, in the order to show them in."""
        for name in ("listed", "new", "changed", "unchanged", "returned", "removed", "held", "problems"):
            yield name, getattr(self, name)
