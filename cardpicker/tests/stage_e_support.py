"""Cards of a folder on disk whose files say what is to be read off them."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from cardpicker.catalogue.name_key import name_key, name_keys
from cardpicker.models import CanonicalCard, CanonicalExpansion, Card, CardWork, Source
from cardpicker.stage_c.hooks import ComputeParts
from cardpicker.stage_e.dispatch import DispatchOptions
from cardpicker.stage_e.settings import StageESettings
from cardpicker.stage_e.vitals import Vitals
from cardpicker.tests.stage_e_jobs import HEADER, read_instructions

HEALTHY = Vitals(load_1m=0.1, largest_rss_mb=50, tree_rss_mb=100)


def calm() -> Vitals:
    """Return a sample that breaches nothing, whatever the machine is doing."""
    return HEALTHY


def options(sample: Any = calm, parts: ComputeParts | None = None, **changes: Any) -> DispatchOptions:
    """Return options with streaming on and a compute function that reads what the test wrote."""
    return DispatchOptions(
        settings=StageESettings(streaming_enabled=True, **changes),
        stage_c=settings.STAGE_C,
        sample=sample,
        parts=parts or ComputeParts(compute=read_instructions),
    )


def make_source(folder: Path) -> Source:
    """Create a source of kind ``local_folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    return Source.objects.create(
        key=f"s-{uuid.uuid4().hex[:8]}", name="test", kind="local_folder", location=str(folder)
    )


def make_printing(name: str, set_code: str, number: str) -> CanonicalCard:
    """Create a printing."""
    expansion, _ = CanonicalExpansion.objects.get_or_create(code=set_code, defaults={"name": set_code})
    return CanonicalCard.objects.create(
        identifier=uuid.uuid4(),
        name=name,
        name_key=name_key(name),
        name_keys=list(name_keys(name)),
        expansion=expansion,
        collector_number=number,
        language="en",
    )


def make_cards(source: Source, count: int, *, name: str = "Opt", **instructions: Any) -> list[Card]:
    """Write ``count`` files with the same instructions and create their cards, by ``bulk_create``."""
    return make_cards_from(source, [{**instructions} for _ in range(count)], name=name)


def make_cards_from(source: Source, instructions: list[Mapping[str, Any]], *, name: str = "Opt") -> list[Card]:
    """Write one file for each of ``instructions`` and create their cards, by ``bulk_create``."""
    cards = []
    for each in instructions:
        identifier = f"{uuid.uuid4().hex}.jpg"
        unique = {"salt": identifier, **each}
        body = HEADER + json.dumps(unique).encode()
        (Path(source.location) / identifier).write_bytes(body)
        digest = hashlib.sha256(body).hexdigest()
        cards.append(
            Card(
                source=source,
                identifier=identifier,
                name=name,
                name_key=name_key(name),
                extension="jpg",
                size=len(body),
                sha256_checksum=digest,
                image_version=digest,
            )
        )
    return Card.objects.bulk_create(cards)


def states(cards: list[Card]) -> list[str]:
    """Return the work states of cards, in their order."""
    found = {row.card_id: row.state for row in CardWork.objects.filter(card__in=cards)}
    return [found[card.pk] for card in cards]
