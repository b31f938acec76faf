"""The calculators, in the order in which they judge. A new one is a file of its own and one entry here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from cardpicker.models import VoteSource
from cardpicker.stage_d.fallback import judge_fallback
from cardpicker.stage_d.join_key import judge_join_key
from cardpicker.stage_d.locking import LockedCard
from cardpicker.stage_d.slow_path import judge_slow_path, store_review_items
from cardpicker.stage_d.subjects import Subject
from cardpicker.stage_d.verdicts import CalculatorReport, Verdict
from cardpicker.stage_d.votes import store_machine_votes

Judge = Callable[[Subject, Sequence[Verdict]], Verdict]
Store = Callable[[Mapping[int, Verdict], str, Mapping[int, LockedCard]], CalculatorReport]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculator:
    """One way of judging: ``judge`` is pure and sees the verdicts before it, ``store`` makes the database say so.

    ``store`` writes within the caller's transaction, for cards that it has locked.
    """

    name: str
    version: int  #: Raised with every change to its rules, so that what it judged is judged again.
    judge: Judge
    store: Store


def _voting(name: str, version: int, source: VoteSource, judge: Judge) -> Calculator:
    return Calculator(name=name, version=version, judge=judge, store=partial(store_machine_votes, name, source))


JOIN_KEY = _voting("stage-d-join-key-v1", 3, VoteSource.OCR, judge_join_key)
FALLBACK = _voting("stage-d-fallback-v1", 2, VoteSource.DEDUCTION, judge_fallback)
SLOW_PATH = Calculator(name="stage-d-slow-path-v1", version=2, judge=judge_slow_path, store=store_review_items)

CALCULATORS: tuple[Calculator, ...] = (JOIN_KEY, FALLBACK, SLOW_PATH)


def stage_d_manifest() -> str:
    """Return a short name of the set of calculators; it changes when one is added, removed or raised."""
    versions = ",".join(f"{calculator.name}={calculator.version}" for calculator in CALCULATORS)
    return hashlib.sha256(versions.encode()).hexdigest()[:16]
