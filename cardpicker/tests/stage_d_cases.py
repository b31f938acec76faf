"""Builders of what Stage D judges: plain values for its rules, rows for its runs."""

from __future__ import annotations

import datetime
import uuid
from typing import Any

from django.contrib.auth.models import User

from cardpicker.catalogue.name_key import name_key, name_keys
from cardpicker.models import CanonicalArtist, CanonicalCard, CanonicalExpansion, Card, ImageEvidence, Source
from cardpicker.stage_d.candidates import Candidate, printed_lines
from cardpicker.stage_d.matching import normalize_number
from cardpicker.stage_d.readings import Readings
from cardpicker.stage_d.subjects import Subject


def candidate(pk: int, set_code: str, number: str, **fields: Any) -> Candidate:
    """Return a candidate as it would be loaded; ``year`` stands for a release on its first of June."""
    if year := fields.pop("year", None):
        fields["released_at"] = datetime.date(year, 6, 1)
    normalized = normalize_number(number)
    lines = printed_lines(set_code, normalized, fields.get("layout", ""))
    return Candidate(id=pk, set_code=set_code, number=normalized, lines=lines, **fields)


def subject(*candidates: Candidate, owners: tuple[Candidate, ...] = (), known: bool = True, **readings: Any) -> Subject:
    """Return a subject with these candidates and readings; its set code is a real one unless ``known`` says not."""
    readings.setdefault("line_confidence", 0.95)
    return Subject(
        card_id=1,
        readings=Readings(**readings),
        candidates=candidates,
        line_owners=owners,
        set_code_known=known and readings.get("set_code") is not None,
    )


def make_printing(name: str, set_code: str, number: str, **fields: Any) -> CanonicalCard:
    """Store a printing, and its set and artist where they are new."""
    expansion, _ = CanonicalExpansion.objects.get_or_create(code=set_code, defaults={"name": set_code.upper()})
    artist = fields.pop("artist", None)
    if artist is not None:
        fields["artist"], _ = CanonicalArtist.objects.get_or_create(name=artist)
    return CanonicalCard.objects.create(
        identifier=uuid.uuid4(),
        name=name,
        name_key=name_key(name),
        name_keys=list(name_keys(name)),
        expansion=expansion,
        collector_number=number,
        language=fields.pop("language", "en"),
        **fields,
    )


def make_card(name: str, **fields: Any) -> Card:
    """Store a card with an image version of its own."""
    source, _ = Source.objects.get_or_create(
        key="cases", defaults={"name": "Cases", "kind": "local_folder", "location": "/nowhere"}
    )
    fields.setdefault("identifier", f"{uuid.uuid4()}.png")
    fields.setdefault("image_version", uuid.uuid4().hex)
    return Card.objects.create(source=source, name=name, name_key=name_key(name), **fields)


def read_card(name: str, *, line: dict[str, Any] | None = None, **fields: Any) -> Card:
    """Store a card with evidence; ``line`` is what the collector line's reading says beside its confidence."""
    readings = fields.pop("readings", {"collector_line": {"confidence": 0.95, **(line or {})}})
    card = make_card(name, **fields)
    ImageEvidence.objects.create(
        card=card, image_version=card.image_version, image_sha256="0" * 64, manifest="any", readings=readings
    )
    return card


def make_user(name: str, *, is_superuser: bool = False) -> User:
    """Store a person who may vote."""
    return User.objects.create(username=name, is_superuser=is_superuser)
