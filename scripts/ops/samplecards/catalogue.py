"""Writes the sample catalog: images, names and truth, from the deck and the facts of its printings."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from PIL import Image

from .deck import DECK
from .frames import draw_card
from .specs import CardSpec, Fault, Printing

JPEG_QUALITY = 86
TRUNCATE_AT = 0.6  #: Share of the bytes that a broken upload keeps.
EXIF_ORIENTATION = 0x0112
TURN_RIGHT_TO_VIEW = 6
NOTHING_PRINTED = Printing(set_code="", number="", artist=None, rarity="", year=0)


class SampleCatalogueError(Exception):
    """The deck and the printings do not fit together."""


def load_printings(path: Path) -> dict[str, Printing]:
    """Return the printings of a file of JSON lines by ``set/number``."""
    printings = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        card = json.loads(line)
        printings[f"{card['set']}/{card['collector_number']}"] = Printing(
            set_code=card["set"],
            number=card["collector_number"],
            artist=card.get("artist"),
            rarity=card["rarity"],
            year=int(card["released_at"][:4]),
        )
    return printings


def render_catalogue(folder: Path, printings: dict[str, Printing]) -> list[str]:
    """Write every image, ``cards.csv`` and ``truth.csv`` into ``folder``; return the names of the images.

    Raises:
        SampleCatalogueError: a card names a printing that ``printings`` lacks.
    """
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    written: list[tuple[str, CardSpec]] = []
    for spec in DECK:
        content = _encode(draw_card(spec, _facts(spec, printings)), spec)
        for file in (spec.file, *spec.copies):
            (images / file).write_bytes(content)
            written.append((file, spec))
    written.sort(key=lambda entry: entry[0])
    _write_csv(images / "cards.csv", [("file", "name"), *((file, spec.name) for file, spec in written)])
    truth = [("file", "expect", "expect_set", "expect_cn", "kind", "frame")]
    _write_csv(folder / "truth.csv", [*truth, *((file, *_truth(spec)) for file, spec in written)])
    return [file for file, _ in written]


def _facts(spec: CardSpec, printings: dict[str, Printing]) -> Printing:
    if spec.invented:
        return spec.invented
    if not spec.printed:
        return NOTHING_PRINTED
    if spec.printed not in printings:
        raise SampleCatalogueError(f"{spec.file}: no printing {spec.printed}; add it to printings.jsonl")
    return printings[spec.printed]


def _truth(spec: CardSpec) -> tuple[str, str, str, str, str]:
    set_code, _, number = spec.printed.partition("/") if spec.expect == "printing" else ("", "", "")
    return spec.expect, set_code, number, spec.kind, spec.frame or spec.style.value


def _encode(image: Image.Image, spec: CardSpec) -> bytes:
    stream = io.BytesIO()
    dpi = (spec.dpi, spec.dpi)
    match Path(spec.file).suffix:
        case ".png":
            image.save(stream, "PNG", optimize=True, dpi=dpi)
        case ".webp":
            image.save(stream, "WEBP", quality=JPEG_QUALITY, method=4)
        case _ if spec.fault is Fault.ROTATED:
            exif = Image.Exif()
            exif[EXIF_ORIENTATION] = TURN_RIGHT_TO_VIEW
            image.transpose(Image.Transpose.ROTATE_90).save(stream, "JPEG", quality=JPEG_QUALITY, dpi=dpi, exif=exif)
        case _:
            image.save(stream, "JPEG", quality=JPEG_QUALITY, dpi=dpi)
    content = stream.getvalue()
    return content[: int(len(content) * TRUNCATE_AT)] if spec.fault is Fault.TRUNCATED else content


def _write_csv(path: Path, rows: list[tuple[str, ...]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)
