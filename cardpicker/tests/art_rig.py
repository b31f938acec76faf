"""What tests of art hashing share: printings, pictures, and a server that stands for Scryfall's."""

from __future__ import annotations

import io
import sys
import urllib.parse
import uuid
from collections.abc import Callable

from django.db import connection
from django.utils import timezone
from PIL import Image

from cardpicker.catalogue.canonical_art import ArtScope, DueArt, due_art, only_run
from cardpicker.models import CanonicalCard
from cardpicker.stage_c.canonical_art import ArtHooks, ArtReport, hash_art
from cardpicker.stage_c.fetch.fetcher import Trust
from cardpicker.stage_c.fetch.limiter import SCRYFALL_IMAGE
from cardpicker.stage_c.fetch.location import ImagePlace
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests.card_pictures import art
from cardpicker.tests.stage_d_cases import make_printing

SETTINGS = StageCSettings(fetch_threads=2, fetch_deadline_s=10.0)


def picture(seed: int) -> bytes:
    """Return a JPEG of art that no other seed gives."""
    stream = io.BytesIO()
    art(seed, (626, 457)).save(stream, "JPEG", quality=90)
    return stream.getvalue()


def flat_picture() -> bytes:
    """Return a JPEG of one color."""
    stream = io.BytesIO()
    Image.new("RGB", (626, 457), (90, 90, 90)).save(stream, "JPEG")
    return stream.getvalue()


def illustrated(count: int, set_code: str = "tst") -> list[CanonicalCard]:
    """Store printings with an illustration and a picture each; the picture's path is the printing's number."""
    return [
        make_printing(
            f"Card {number}",
            set_code,
            str(number),
            illustration_id=uuid.uuid4(),
            image_uri=f"https://cards.scryfall.io/normal/front/{number}.jpg",
        )
        for number in range(1, count + 1)
    ]


def place_on(base: str) -> Callable[[DueArt, StageCSettings], ImagePlace | None]:
    """Return a map of printings to a server on loopback, at the shared rate of Scryfall's pictures."""

    def place(due: DueArt, settings: StageCSettings) -> ImagePlace | None:
        path = urllib.parse.urlsplit(due.image_uri).path
        if not path:
            return None
        trust = Trust(private_hosts=frozenset({"127.0.0.1"}))
        return ImagePlace(location=f"{base}{path}", trust=trust, destination=SCRYFALL_IMAGE)

    return place


def path_of(printing: CanonicalCard) -> str:
    """Return where the server has a printing's picture."""
    return urllib.parse.urlsplit(printing.image_uri).path


def hash_all(base: str, *, limit: int | None = None, scope: ArtScope | None = None, **hooks: object) -> ArtReport:
    """Hash what is due now."""
    wanted = due_art(scope or ArtScope(), timezone.now())
    return hash_art(wanted, settings=SETTINGS, hooks=ArtHooks(place=place_on(base), **hooks), limit=limit)  # type: ignore[arg-type]


def main() -> None:
    """Hash until killed, in a process of its own: the server's address and the database's name are its arguments."""
    connection.settings_dict["NAME"] = sys.argv[2]
    with only_run():
        hash_all(sys.argv[1])
