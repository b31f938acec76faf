"""The bulk job that parses stored text anew: no fetch, no OCR."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from django.db import connection
from django.db.models import Exists, F, OuterRef, QuerySet

from cardpicker.catalogue.lexicon import artists_by_name_key, load_lexicon
from cardpicker.models import Card, ImageEvidence
from cardpicker.operations.bulk.jobs import ChunkResult, Scope
from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.registry import extractor_versions, manifest
from cardpicker.stage_c.reparse import FROM_TEXT, reparse
from cardpicker.stage_c.storable import clean_json
from cardpicker.stage_d.locking import lock_cards
from cardpicker.stage_e.work import mark_due

#: What is shown of a change: the values that Stage D goes by.
SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "collector_line": ("number", "set_code", "set_size", "rarity", "language", "artist_in_row", "confidence"),
    "legal_line": ("copyright_year",),
    "artist": ("artist",),
}
_COLUMN_LENGTHS: Final[Mapping[str, int]] = {
    name: getattr(ImageEvidence._meta.get_field(name), "max_length", 0) for name in ("set_code", "collector_number")
}
_STORE: Final = """
UPDATE cardpicker_imageevidence AS evidence
SET readings = evidence.readings || parsed.readings, extractor_versions = parsed.versions, manifest = parsed.manifest,
    set_code = parsed.set_code, collector_number = parsed.number, judged_by = '', updated_at = clock_timestamp()
FROM json_to_recordset(%s::json)
    AS parsed(id bigint, readings jsonb, versions jsonb, manifest text, set_code text, number text)
WHERE evidence.id = parsed.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReparseEvidence:
    """Bring readings in line with today's parsers, and make the cards whose readings changed due for judgement."""

    command: ClassVar[str] = "reparse_collector_evidence"
    needs_dry_run: ClassVar[bool] = False
    scope: Scope

    @property
    def words(self) -> str:
        """The scope and the parsers."""
        return f"{self.scope.words}; extractors {manifest()}"

    def cards(self) -> QuerySet[Card]:
        """Listed cards in scope with evidence of the image that they have."""
        evidence = ImageEvidence.objects.filter(card=OuterRef("pk"), image_version=F("card__image_version"))
        return self.scope.cards().filter(Exists(evidence), removed_at__isnull=True)

    def apply(self, card_ids: Collection[int], run_id: str) -> ChunkResult:
        """Parse, compare, store what differs."""
        lock_cards(card_ids)
        counts: Counter[str] = Counter()
        changes: list[Mapping[str, Any]] = []
        stored: list[dict[str, Any]] = []
        changed_cards: list[int] = []
        for row, parsed in _parsed(card_ids):
            if not parsed:
                counts["no stored rows"] += 1
                continue
            differing = list(_differences(row, parsed))
            is_same = all(row.readings.get(name) == reading for name, reading in parsed.items())
            row_of = _row(row, parsed)
            if is_same and row_of["versions"] == row.extractor_versions and row_of["manifest"] == row.manifest:
                counts["unchanged"] += 1
                continue
            stored.append(row_of)
            changed_cards.append(row.card_id)
            counts["changed" if differing else "changed in detail only"] += 1
            counts.update(f"{change['what']} {_kind(change)}" for change in differing)
            changes += differing
        with connection.cursor() as cursor:
            cursor.execute(_STORE, [json.dumps(stored)])
        counts["made_due"] = mark_due(changed_cards, "reparsed")
        return ChunkResult(counts=counts, changes=changes)


def _parsed(card_ids: Collection[int]) -> Iterator[tuple[ImageEvidence, dict[str, Reading]]]:
    """Yield the cards' evidence with what today's parsers make of it."""
    rows = list(
        ImageEvidence.objects.filter(card_id__in=card_ids, image_version=F("card__image_version"))
        .select_related("card")
        .order_by("card_id")
    )
    artists = artists_by_name_key({row.card.name_key for row in rows})
    lexicon = Lexicon(set_codes=load_lexicon())
    for row in rows:
        context = ComputeContext(artists=artists.get(row.card.name_key, ()))
        parsed = reparse(row.readings, context, lexicon)
        yield row, {name: _cleaned(reading) for name, reading in parsed.items()}


def _cleaned(reading: Reading) -> Reading:
    cleaned = clean_json(dict(reading))
    assert isinstance(cleaned, dict)
    return cleaned


def _row(row: ImageEvidence, parsed: Mapping[str, Reading]) -> dict[str, Any]:
    """Return the row to store; its manifest is today's once every extractor's version is."""
    today = extractor_versions()
    versions = {**row.extractor_versions, **{name: today[name] for name in FROM_TEXT}}
    line = parsed["collector_line"]
    return {
        "id": row.pk,
        "readings": dict(parsed),
        "versions": versions,
        "manifest": manifest() if versions == today else row.manifest,
        "set_code": _fitting("set_code", line.get("set_code")),
        "number": _fitting("collector_number", line.get("number")),
    }


def _fitting(column: str, value: object) -> str:
    text = value if isinstance(value, str) else ""
    return text if len(text) <= _COLUMN_LENGTHS[column] else ""


def _differences(row: ImageEvidence, parsed: Mapping[str, Reading]) -> Iterator[Mapping[str, Any]]:
    for extractor, names in SHOWN.items():
        before, after = row.readings.get(extractor) or {}, parsed[extractor]
        for name in names:
            if before.get(name) != after.get(name):
                yield {"card": row.card_id, "what": name, "before": before.get(name), "after": after.get(name)}


def _kind(change: Mapping[str, Any]) -> str:
    if change["before"] is None:
        return "gained"
    return "lost" if change["after"] is None else "changed"
