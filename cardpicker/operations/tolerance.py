"""How far a score may fall short before verification fails: in the head of a truth file, or by option.

A golden set is a truth file that says so itself: lines before its columns such as ``# max_wrong=0 min_recall=0.75``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

from cardpicker.operations.abstentions import Abstentions
from cardpicker.operations.scoring import Score, ScoringError

_SETTING = re.compile(r"(\w+)\s*=\s*(\S+?),?(?:\s+|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """Minimums as shares of 1, maximums as counts; None asks for nothing."""

    min_precision: float | None = None
    min_recall: float | None = None
    min_survivors: float | None = None  #: Ambiguous cards whose true printing is among those still possible.
    max_wrong: int | None = None
    max_false_positives: int | None = None
    max_unscored: int | None = None  #: Files of the truth that are no card's.

    def overridden_by(self, other: Tolerance) -> Tolerance:
        """Return this tolerance with whatever the other one asks for in its place."""
        asked = {each.name: getattr(other, each.name) for each in fields(other)}
        return replace(self, **{name: value for name, value in asked.items() if value is not None})

    def misses(self, score: Score, abstentions: Abstentions) -> list[str]:
        """Return what the score falls short of, in words; what could not be measured meets no minimum."""
        overall = score.overall.as_json()
        minimums = {
            "precision": (overall["precision"], self.min_precision),
            "recall": (overall["recall"], self.min_recall),
            "survivors": (abstentions.ambiguous_share, self.min_survivors),
        }
        maximums = {
            "wrong": (overall["wrong"], self.max_wrong),
            "false positives": (overall["false_positives"], self.max_false_positives),
            "unscored": (len(score.unscored), self.max_unscored),
        }
        short = [
            f"{name} {'could not be measured' if got is None else got} (at least {wanted})"
            for name, (got, wanted) in minimums.items()
            if wanted is not None and (got is None or got < wanted)
        ]
        over = [
            f"{name} {got} (at most {wanted})"
            for name, (got, wanted) in maximums.items()
            if wanted is not None and (got is None or got > wanted)
        ]
        return short + over


def read_tolerance(path: Path) -> Tolerance:
    """Read the settings in the head of a truth file; a file without any asks for nothing.

    Raises:
        ScoringError: a setting is unknown or no number; names the line.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            head = list(head_lines(stream))
    except (OSError, UnicodeDecodeError):
        return Tolerance()  # Whoever reads the rows says what is wrong with the file.
    found: dict[str, float | int] = {}
    for number, line in enumerate(head, start=1):
        for name, text in _SETTING.findall(line):
            found[name] = _value(path, number, name, text)
    return Tolerance(**found)  # type: ignore[arg-type]


def head_lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines before the columns of a truth file: those that begin with ``#``."""
    for line in lines:
        if not line.startswith("#"):
            return
        yield line


def _value(path: Path, line: int, name: str, text: str) -> float | int:
    known = {each.name for each in fields(Tolerance)}
    if name not in known:
        raise ScoringError(f"{path} line {line}: {name!r} is no tolerance; known: {', '.join(sorted(known))}.")
    try:
        value: float | int = int(text) if name.startswith("max_") else float(text)
    except ValueError:
        value = -1
    if value < 0 or (name.startswith("min_") and value > 1):
        wanted = "a whole number" if name.startswith("max_") else "a share from 0 to 1"
        raise ScoringError(f"{path} line {line}: {name}={text} is not {wanted}.")
    return value
