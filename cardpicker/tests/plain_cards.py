"""Cards whose images are real and quick to read, since nothing is on them; each distinct by one trailing word."""

from __future__ import annotations

import hashlib
import io
import uuid
from pathlib import Path

from django.db import transaction
from PIL import Image

from cardpicker.catalogue.name_key import name_key
from cardpicker.models import Card, Source


def save_plain_cards(source: Source, count: int) -> list[Card]:
    """Write ``count`` images into the source's folder and save their cards in one transaction."""
    drawn = io.BytesIO()
    Image.new("L", (100, 140), 90).save(drawn, "PNG")
    with transaction.atomic():
        return [_save(source, drawn.getvalue() + uuid.uuid4().bytes) for _ in range(count)]


def _save(source: Source, body: bytes) -> Card:
    digest = hashlib.sha256(body).hexdigest()
    identifier = f"{digest}.png"
    (Path(source.location) / identifier).write_bytes(body)
    return Card.objects.create(
        source=source,
        identifier=identifier,
        name="Opt",
        name_key=name_key("Opt"),
        sha256_checksum=digest,
        image_version=digest,
    )
