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
from cardpicker.stage_d.scorer_parameters import scorer_parameters
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
    parameters: str = ""  #: Digest of what it judges by beside its rules; another one has the same effect.
    judge: Judge
    store: Store


def _voting(name: str, version: int, source: VoteSource, judge: Judge, parameters: str = "") -> Calculator:
    store = partial(store_machine_votes, name, source)
    return Calculator(name=name, version=version, judge=judge, store=store, parameters=parameters)


JOIN_KEY = _voting("stage-d-join-key-v1", 4, VoteSource.OCR, judge_join_key)
# The name is the voter's: under another one a card would keep the old vote beside the new.
FALLBACK = _voting("stage-d-fallback-v1", 3, VoteSource.DEDUCTION, judge_fallback, scorer_parameters().digest)
SLOW_PATH = Calculator(name="stage-d-slow-path-v1", version=2, judge=judge_slow_path, store=store_review_items)

CALCULATORS: tuple[Calculator, ...] = (JOIN_KEY, FALLBACK, SLOW_PATH)


def stage_d_manifest(calculators: Sequence[Calculator] = CALCULATORS) -> str:
    """Return a short name of the set of calculators; it changes when one is added, removed, raised or fitted anew."""
    versions = ",".join(f"{each.name}={each.version}{each.parameters and '+'}{each.parameters}" for each in calculators)
    return hashlib.sha256(versions.encode()).hexdigest()[:16]
