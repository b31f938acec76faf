"""Votes as rows: read, written and deleted many at a time. Who calls has locked their cards.

A trigger of the database keeps what a write replaces or a deletion removes; here it is only told why.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import connection

from cardpicker.models import VoteChange

EvidenceSummary = dict[str, object]

_COLUMNS: Final = (
    "card_id",
    "printing_id",
    "is_no_match",
    "anonymous_id",
    "user_id",
    "source",
    "confidence",
    "evidence",
    "image_version",
    "run_id",
)
_READ: Final = """
SELECT id, card_id, printing_id, source, confidence, evidence::text, image_version
FROM cardpicker_cardprintingtag WHERE card_id = ANY(%s) AND anonymous_id = %s
"""
_REPLACED: Final = tuple(column for column in _COLUMNS if column not in ("card_id", "anonymous_id"))
_UPSERT: Final = f"""
INSERT INTO cardpicker_cardprintingtag ({", ".join(_COLUMNS)}, updated_at)
SELECT {", ".join(_COLUMNS)}, clock_timestamp()
FROM unnest(%s::bigint[], %s::bigint[], %s::boolean[], %s::text[], %s::int[], %s::text[], %s::float[], %s::jsonb[],
            %s::text[], %s::text[]) AS vote({", ".join(_COLUMNS)})
ON CONFLICT (card_id, anonymous_id) DO UPDATE
SET {", ".join(f"{column} = excluded.{column}" for column in _REPLACED)}, updated_at = excluded.updated_at
"""
# One round trip: the settings last until the transaction ends, and the count is the last statement's.
_DELETE: Final = """
SELECT set_config('cardpicker.vote_change', %s, true), set_config('cardpicker.vote_change_run', %s, true);
DELETE FROM cardpicker_cardprintingtag WHERE id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRow:
    """One voter's vote on a card; ``printing_id`` None is "no such printing"."""

    card_id: int
    printing_id: int | None
    voter: str
    user_id: int | None = None
    source: str
    confidence: float | None = None
    evidence: EvidenceSummary = field(default_factory=dict)
    image_version: str = ""
    run_id: str = ""

    def says_the_same(self, other: VoteRow) -> bool:
        """Whether two votes differ at most in the run that cast them."""
        return self._said == other._said

    @property
    def _said(self) -> tuple[object, ...]:
        return (
            self.printing_id,
            self.source,
            self.confidence,
            self.evidence,
            self.image_version,
        )


def read_votes(card_ids: Collection[int], voter: str) -> dict[int, tuple[int, VoteRow]]:
    """Return a voter's live votes with their row's keys, by card."""
    with connection.cursor() as cursor:
        cursor.execute(_READ, [sorted(card_ids), voter])
        rows = cursor.fetchall()
    return {
        card_id: (
            pk,
            VoteRow(
                card_id=card_id,
                printing_id=printing_id,
                voter=voter,
                source=source,
                confidence=confidence,
                evidence=json.loads(evidence),
                image_version=image_version,
            ),
        )
        for pk, card_id, printing_id, source, confidence, evidence, image_version in rows
    }


def upsert_votes(votes: Sequence[VoteRow]) -> None:
    """Write votes, each in the place of its voter's earlier one on the card."""
    if not votes:
        return
    columns = zip(
        *(
            (
                vote.card_id,
                vote.printing_id,
                vote.printing_id is None,
                vote.voter,
                vote.user_id,
                vote.source,
                vote.confidence,
                json.dumps(vote.evidence),
                vote.image_version,
                vote.run_id,
            )
            for vote in votes
        ),
        strict=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, [list(column) for column in columns])


def delete_votes(vote_ids: Collection[int], change: VoteChange, run_id: str = "") -> int:
    """Remove votes, say why in their trail, and return how many there were."""
    if not vote_ids:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_DELETE, [change.value, run_id, sorted(vote_ids)])
        return int(cursor.rowcount)
