"""Whether refusals mean one file or us: only the files after the first one tell."""

from __future__ import annotations

from typing import Generic, TypeVar

from cardpicker.stage_c.outcomes import Fetched, FetchOutcome, Gone, LockedOut

REFUSALS_IN_A_ROW = 3

K = TypeVar("K")


class RefusalStreak(Generic[K]):
    """Holds refused files back until it is known what their refusal means."""

    def __init__(self) -> None:
        self._held: list[tuple[K, Gone]] = []
        self._lockout: LockedOut | None = None

    def judge(self, key: K, outcome: FetchOutcome) -> list[tuple[K, FetchOutcome]]:
        """Take one fetch of a remote file, and return those that are judged now, in order."""
        if isinstance(outcome, LockedOut):
            self._lockout = outcome
        elif isinstance(outcome, Gone) and outcome.refused:
            self._held.append((key, outcome))
            if self._lockout is None and len(self._held) >= REFUSALS_IN_A_ROW:
                detail = f"{REFUSALS_IN_A_ROW} files in a row refused, the last one with {outcome.detail}"
                self._lockout = LockedOut(detail=detail)
            return self.release() if self._lockout is not None else []
        judged = [*self.release(), (key, outcome)]
        if isinstance(outcome, Fetched):
            self._lockout = None
        return judged

    def release(self) -> list[tuple[K, FetchOutcome]]:
        """Return what is held: as lockouts once there is one, else as what it was, too little to mean more."""
        held: list[tuple[K, FetchOutcome]] = [(key, self._lockout or outcome) for key, outcome in self._held]
        self._held.clear()
        return held
