"""Cards with synthetic evidence for the benchmark of Stage D: lines as they are read, misread, half read and not read.

Rows go in by JSON, many at a time; nothing here is timed.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from cardpicker.catalogue.name_key import name_key
from cardpicker.models import CanonicalCard, Source
from cardpicker.stage_c.extractors.registry import extractor_versions, manifest

STEP = 5_000
TWIN_SHARE = 0.189
#: Shares of cards by what was read: a whole line, a number alone, artist and year, nothing.
READ = (("line", 0.52), ("number", 0.10), ("artist", 0.20), ("nothing", 0.18))
PEOPLE = 40

_CARDS = """
INSERT INTO cardpicker_card (source_id, identifier, name, name_key, card_type, extension, size, sha256_checksum,
                             md5_checksum, image_version, printing_tag_status, name_hints)
SELECT source_id, identifier, name, name_key, 'CARD', 'jpg', 1, sha256, md5, sha256, 'UNRESOLVED', '{}'
FROM json_to_recordset(%s::json)
    AS card(source_id bigint, identifier text, name text, name_key text, sha256 text, md5 text)
RETURNING id
"""
_EVIDENCE = """
INSERT INTO cardpicker_imageevidence (card_id, image_version, image_sha256, manifest, extractor_versions, readings,
    width_px, height_px, set_code, collector_number, elapsed_ms, run_id, judged_by, updated_at)
SELECT card_id, sha256, sha256, %s, %s::jsonb, readings, 744, 1038, '', '', 500, 'bench', '', now()
FROM json_to_recordset(%s::json) AS evidence(card_id bigint, sha256 text, readings jsonb)
"""
_VOTES = """
INSERT INTO cardpicker_cardprintingtag
    (card_id, printing_id, is_no_match, anonymous_id, source, evidence, image_version, run_id, updated_at)
SELECT card.id, printing.id, false, 'user:' || (1 + (card.id + turn * 7) %% %s), 'USER', '{}', card.image_version, '', now()
FROM generate_series(0, %s) AS turn
CROSS JOIN (SELECT id, image_version FROM cardpicker_card ORDER BY id) AS card
CROSS JOIN LATERAL (SELECT id FROM cardpicker_canonicalcard ORDER BY id OFFSET card.id %% 3 LIMIT 1) AS printing
ORDER BY turn, card.id LIMIT %s
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True)
class Printed:
    """What is printed on a card."""

    name: str
    set_code: str
    number: str
    language: str
    artist: str
    year: int


def make_cards(count: int, seed: int = 1) -> None:
    """Store ``count`` cards with current evidence; the printings are there already."""
    draw = random.Random(seed)
    printings = _printings()
    source, _ = Source.objects.get_or_create(key="bench", defaults={"kind": "local_folder", "location": "/nowhere"})
    with connection.cursor() as cursor:
        for at in range(0, count, STEP):
            rows = list(_rows(draw, printings, source.pk, range(at, min(at + STEP, count))))
            cursor.execute(_CARDS, [json.dumps(rows)])
            for row, (card_id,) in zip(rows, cursor.fetchall(), strict=True):
                row["card_id"] = card_id
            cursor.execute(_EVIDENCE, [manifest(), json.dumps(extractor_versions()), json.dumps(rows)])
        cursor.execute("ANALYZE")


def make_votes(pairs: int) -> int:
    """Store up to ``pairs`` votes of people, several a card, most of them agreeing; return how many."""
    with connection.cursor() as cursor:
        cursor.execute(_VOTES, [PEOPLE, 5, pairs])
        count = int(cursor.rowcount)
        cursor.execute("ANALYZE cardpicker_cardprintingtag")
    return count


def _printings() -> list[Printed]:
    columns = ("name", "expansion__code", "collector_number", "language", "artist__name", "released_at__year")
    rows = CanonicalCard.objects.order_by("pk").values_list(*columns)
    return [
        Printed(name, code, number, lang, artist or "", year or 2000) for name, code, number, lang, artist, year in rows
    ]


def _rows(
    draw: random.Random, printings: Sequence[Printed], source_id: int, numbers: range
) -> Iterator[dict[str, Any]]:
    earlier: list[tuple[Printed, str, dict[str, Any]]] = []
    for number in numbers:
        if earlier and draw.random() < TWIN_SHARE:
            printed, sha256, readings = draw.choice(earlier)
        else:
            printed = draw.choice(printings)
            sha256 = hashlib.sha256(f"{numbers.start}-{number}".encode()).hexdigest()
            readings = _readings(draw, printed)
            earlier.append((printed, sha256, readings))
        yield {
            "source_id": source_id,
            "identifier": f"{number}.jpg",
            "name": printed.name,
            "name_key": name_key(printed.name),
            "sha256": sha256,
            "md5": sha256[:32],
            "readings": readings,
        }


def _readings(draw: random.Random, printed: Printed) -> dict[str, Any]:
    kind = draw.choices([name for name, _ in READ], [share for _, share in READ])[0]
    number = printed.number
    if draw.random() < 0.03 and number[-1:].isdigit():
        number = number[:-1] + str((int(number[-1]) + 5) % 10)
    line = {
        "raw": f"{number} {printed.set_code}",
        "number": number if kind in ("line", "number") else None,
        "set_code": printed.set_code if kind == "line" else None,
        "set_code_known": kind == "line",
        "language": printed.language if kind == "line" else None,
        "artist_in_row": printed.artist if kind == "line" and draw.random() < 0.6 else None,
        "confidence": round(draw.uniform(0.6, 0.99), 3) if kind in ("line", "number") else 0.0,
    }
    told = kind in ("line", "artist")
    return {
        "bottom_text": {"passes": [_pass(draw, printed, variant) for variant in ("gray", "strokes")]},
        "geometry": {"width_px": 744, "height_px": 1038, "has_bleed": True, "bleed_mm": 3.175, "confidence": 0.9},
        "collector_line": line,
        "legal_line": {"raw": "", "copyright_year": printed.year if told else None, "proxy_marks": []},
        "artist": {"raw": "", "artist": printed.artist if told and draw.random() < 0.7 else None, "ratio": 0.9},
        "art_hash": {"kind": "phash64-art-v2", "hash": f"{draw.getrandbits(64):016x}", "detail": 0.8},
        "quality": {"truncated": False, "sharpness": 120.5, "border_color": "black", "mode": "RGB", "format": "JPEG"},
    }


def _pass(draw: random.Random, printed: Printed, variant: str) -> dict[str, Any]:
    """Return stored rows, as long as real ones: reading evidence must cost what it costs."""
    text = f"{printed.number} {printed.set_code.upper()} {printed.language.upper()} {printed.artist}"
    words = len(text.split())
    row = {"text": text, "box_mm": [3.0, 82.0, 20.0, 84.0], "glyph_mm": 1.4}
    return {
        "variant": variant,
        "rows": [{**row, "word_confidence": [round(draw.random(), 3) for _ in range(words)]} for _ in range(4)],
    }
