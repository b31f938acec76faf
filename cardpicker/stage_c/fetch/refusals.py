"""Whether refusals mean one file or us: only the files after the first one tell."""

from __future__ import annotations

from typing import Generic, TypeVar

from cardpicker.stage_c.outcomes import FetchOutcome, Gone, LockedOut

REFUSALS_IN_A_ROW = 3

K = TypeVar("K")


class RefusalStreak(Generic[K]):
    """Holds refused files back until it is known what their refusal means."""

    def __init__(self) -> None:
        self._held: list[tuple[K, Gone]] = []

    def judge(self, key: K, outcome: FetchOutcome) -> list[tuple[K, FetchOutcome]]:
        """Take one fetch of a remote file, and return those that are judged now, in order."""
        if not (isinstance(outcome, Gone) and outcome.refused):
            return [*self.release(), (key, outcome)]
        self._held.append((key, outcome))
        if len(self._held) < REFUSALS_IN_A_ROW:
            return []
        detail = f"{REFUSALS_IN_A_ROW} files in a row refused, the last one with {outcome.detail}"
        return [(held, LockedOut(detail=detail)) for held, _ in self.release()]

    def release(self) -> list[tuple[K, FetchOutcome]]:
        """Return what is held as it was: too few refusals to mean more than their files."""
        held: list[tuple[K, FetchOutcome]] = [*self._held]
        self._held.clear()
        return held
