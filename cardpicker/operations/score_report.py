"""A score as JSON and as an aligned table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cardpicker.operations.abstentions import Abstentions
from cardpicker.operations.scoring import Expect, Score, ScoredRow, Tally, tally
from cardpicker.operations.text_table import format_table

COLUMNS: Final = ("cards", "right", "wrong", "false_positives", "abstained", "precision", "recall")
_HEADINGS: Final = ("cards", "right", "wrong", "false pos.", "abstained", "precision", "recall")

JSONValue = str | int | float | None


def as_json(score: Score, abstentions: Abstentions) -> dict[str, object]:
    """Return the score as plain values."""
    return {
        "overall": score.overall.as_json(),
        "in_catalog": in_catalog(score, abstentions).as_json(),
        "by_kind": {name: counts.as_json() for name, counts in score.by("kind").items()},
        "by_frame": {name: counts.as_json() for name, counts in score.by("frame").items()},
        "wrong": [_misstep(row) for row in score.missteps],
        **abstentions.as_json(),
        "unscored": {"count": len(score.unscored), "files": list(score.unscored)},
    }


def in_catalog(score: Score, abstentions: Abstentions) -> Tally:
    """Count the rows whose expected printing the catalog has: nobody can find the others."""
    unknown = set(abstentions.unknown_printings)
    return tally(row for row in score.rows if row.truth.expect is Expect.PRINTING and row.truth.answer not in unknown)


def as_text(score: Score, abstentions: Abstentions) -> str:
    """Return the score as tables, each wrong vote named, and why there is none where there is none."""
    overall = {"all": score.overall, "expected, and in the catalog": in_catalog(score, abstentions)}
    parts = [_table("overall", overall), _table("by kind", score.by("kind"))]
    parts.append(_table("by frame", score.by("frame")))
    missteps = [f"  {row.truth.file}: voted {_voted(row)}, expected {row.truth.answer}" for row in score.missteps]
    parts.append("\n".join(["wrong votes:", *missteps]) if missteps else "wrong votes: none")
    if abstentions.rows:
        parts.append("\n".join(_silences(abstentions)))
    if score.unscored:
        parts.append("\n".join([f"no such card ({len(score.unscored)}):", *(f"  {file}" for file in score.unscored)]))
    return "\n\n".join(parts)


def _silences(abstentions: Abstentions) -> Iterator[str]:
    yield "no vote, by the question that is asked instead:"
    yield from (f"  {count:>4}  {reason}" for reason, count in sorted(abstentions.by_reason.items()))
    if (share := abstentions.ambiguous_share) is not None:
        yield f"  of {len(abstentions.ambiguous)} ambiguous ones {share:.0%} have the truth among what is still possible"
    if abstentions.unknown_printings:
        yield f"  expected, and not in the catalog: {', '.join(abstentions.unknown_printings)}"


def _misstep(row: ScoredRow) -> dict[str, JSONValue]:
    return {
        "file": row.truth.file,
        "card_id": row.card_id,
        "result": row.result.value,
        "expected": row.truth.answer,
        "voted": row.vote.answer if row.vote else None,
        "voter": row.vote.voter if row.vote else None,
        "confidence": row.vote.confidence if row.vote else None,
    }


def _voted(row: ScoredRow) -> str:
    return f"{row.vote.answer} ({row.vote.voter}, {row.vote.confidence:.2f})" if row.vote else "nothing"


def _table(title: str, tallies: Mapping[str, Tally]) -> str:
    rows = [[name, *_cells(counts)] for name, counts in tallies.items()]
    return "\n".join(format_table([title, *_HEADINGS], rows, right=_HEADINGS))


def _cells(counts: Tally) -> list[str]:
    values = counts.as_json()
    return [_cell(values[column]) for column in COLUMNS]


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
