"""Slow path: what no calculator could vote on becomes a question to a person, with the printings still possible.

A machine's vote that awaits people is no question here: the card has its answer to confirm. An item goes when it no
longer applies, whoever made it so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import compress
from typing import Final

from django.db import connection

from cardpicker.models import ReviewItem, ReviewReason
from cardpicker.stage_d.answerability import answerability
from cardpicker.stage_d.art_index import art_distances, keep_by_art
from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.locking import LockedCard
from cardpicker.stage_d.subjects import Subject
from cardpicker.stage_d.verdicts import Abstained, CalculatorReport, Routed, SkipReason, Verdict, Vote

#: A person chooses among a few; of a basic land's hundreds the best are enough.
MAX_SURVIVORS: Final = 60

_READ: Final = """
SELECT card_id, reason, detail, survivors, suggestions::text, answerability
FROM cardpicker_reviewitem WHERE card_id = ANY(%s)
"""
_UPSERT: Final = """
INSERT INTO cardpicker_reviewitem
    (card_id, reason, detail, survivors, suggestions, answerability, run_id, updated_at)
SELECT card_id, reason, detail, survivors, suggestions, answerability, run_id, clock_timestamp()
FROM json_to_recordset(%s::json) AS item(
    card_id bigint, reason text, detail text, survivors bigint[], suggestions jsonb, answerability int, run_id text
)
ON CONFLICT (card_id) DO UPDATE
SET reason = excluded.reason, detail = excluded.detail, survivors = excluded.survivors, run_id = excluded.run_id,
    suggestions = excluded.suggestions, answerability = excluded.answerability, updated_at = excluded.updated_at
"""

REVIEW_REASONS: Final[Mapping[SkipReason, ReviewReason]] = {
    SkipReason.UNKNOWN_NAME: ReviewReason.UNKNOWN_NAME,
    SkipReason.NO_TEXT: ReviewReason.NO_TEXT,
    SkipReason.LOW_CONFIDENCE: ReviewReason.NO_TEXT,
    SkipReason.TOO_LITTLE: ReviewReason.NO_TEXT,
    SkipReason.AMBIGUOUS: ReviewReason.AMBIGUOUS,
    SkipReason.SAME_LINE: ReviewReason.AMBIGUOUS,
    SkipReason.UNKNOWN_SET_CODE: ReviewReason.UNKNOWN_SET,
    SkipReason.NUMBER_FITS_NONE: ReviewReason.CONTRADICTION,
    SkipReason.LINE_OF_ANOTHER_CARD: ReviewReason.CONTRADICTION,
    SkipReason.TRUNCATED: ReviewReason.CONTRADICTION,
    SkipReason.YEAR_CONTRADICTS: ReviewReason.CONTRADICTION,
    SkipReason.ARTIST_CONTRADICTS: ReviewReason.CONTRADICTION,
    SkipReason.NONE_FITS: ReviewReason.CONTRADICTION,
    SkipReason.SETTLED_EARLIER: ReviewReason.UNCONFIRMED,
}


def judge_slow_path(subject: Subject, earlier: Sequence[Verdict] = ()) -> Verdict:
    """Return the question to ask, or an abstention where a calculator voted.

    Args:
        earlier: the verdicts of the calculators before this one, in their order; the first one's reason is asked.
    """
    if any(isinstance(verdict, Vote) for verdict in earlier):
        return Abstained(reason=SkipReason.SETTLED_EARLIER)
    abstained = [verdict for verdict in earlier if isinstance(verdict, Abstained)]
    reason = abstained[0].reason if abstained else SkipReason.NO_TEXT
    known = {candidate.id: candidate for candidate in (*subject.line_owners, *subject.candidates)}
    survivors = _survivors(subject, abstained, known)
    left = [known[pk] for pk in survivors if pk in known]
    return Routed(
        reason=REVIEW_REASONS[reason],
        detail=_detail(subject, [verdict.reason for verdict in abstained]),
        survivors=survivors,
        suggestions=subject.suggestions,
        answerability=answerability(subject.readings, left, subject.suggestions),
    )


def store_review_items(
    verdicts: Mapping[int, Verdict], run_id: str, locked: Mapping[int, LockedCard]
) -> CalculatorReport:
    """Make the cards' review items equal to their verdicts: written where changed, deleted where nothing is asked."""
    routed = {pk: verdict for pk, verdict in verdicts.items() if isinstance(verdict, Routed) and pk in locked}
    with connection.cursor() as cursor:
        cursor.execute(_READ, [sorted(verdicts)])
        items = {row[0]: (*row[1:4], json.loads(row[4]), row[5]) for row in cursor.fetchall()}
    changed = [
        (card_id, verdict) for card_id, verdict in sorted(routed.items()) if items.get(card_id) != _stored(verdict)
    ]
    _upsert(changed, run_id)
    if answered := items.keys() - routed.keys():
        ReviewItem.objects.filter(card_id__in=answered).delete()
    return CalculatorReport(routed=len(routed))


def _stored(item: Routed) -> tuple[object, ...]:
    """Return what the row says of a question, but for the run that put it."""
    suggestions = [asdict(suggestion) for suggestion in item.suggestions]
    return item.reason, item.detail, list(item.survivors), suggestions, item.answerability


def _upsert(items: Sequence[tuple[int, Routed]], run_id: str) -> None:
    if not items:
        return
    rows = [
        {
            "card_id": card_id,
            "reason": item.reason.value,
            "detail": item.detail,
            "survivors": [*item.survivors],
            "suggestions": [asdict(suggestion) for suggestion in item.suggestions],
            "answerability": item.answerability,
            "run_id": run_id,
        }
        for card_id, item in items
    ]
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, [json.dumps(rows)])


def _detail(subject: Subject, reasons: Sequence[SkipReason]) -> str:
    readings = subject.readings
    read = {
        "set": readings.set_code,
        "number": readings.number,
        "artist": readings.any_artist,
        "year": readings.copyright_year,
    }
    parts = [f"{name} {value}" for name, value in read.items() if value is not None]
    why = ", ".join(dict.fromkeys(reason.value for reason in reasons))
    return f"{why}; read: {', '.join(parts) or 'nothing'}"[:500]


def _survivors(subject: Subject, abstained: Sequence[Abstained], known: Mapping[int, Candidate]) -> tuple[int, ...]:
    """Return whom the calculators and the art left, best first."""
    named = _named(subject, abstained)
    art_hash = subject.readings.art_hash
    if art_hash is not None:
        distances = art_distances(art_hash, [known[pk].art_hash if pk in known else None for pk in named])
        named = list(compress(named, keep_by_art(distances)))
    return tuple(named[:MAX_SURVIVORS])


def _named(subject: Subject, abstained: Sequence[Abstained]) -> Sequence[int]:
    """Return whom the calculators left; printings of one line are all that is asked where they are known."""
    for verdict in abstained:
        if verdict.reason is SkipReason.SAME_LINE and verdict.survivors:
            return verdict.survivors
    votes = Counter(pk for verdict in abstained for pk in verdict.survivors)
    # Whom more calculators left comes first; among equals their own order holds, for sorting is stable.
    left = sorted(votes, key=lambda pk: -votes[pk])
    return left or [candidate.id for candidate in subject.candidates]
