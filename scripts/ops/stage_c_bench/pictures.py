"""The images that a bench reads: a folder's files, and as many different cards of them as are asked for."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cardpicker.catalogue.name_key import name_keys
from cardpicker.stage_c.evidence import ComputeContext, Lexicon
from scripts.ops.bench_reading import read_catalogue

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"})
NAMES = "cards.csv"  #: Beside the images, with ``file`` and ``name``; without it a file's stem is the card's name.


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One file, and what is known of its card before it is read."""

    file: str
    name: str
    body: bytes
    context: ComputeContext


def vary(body: bytes, serial: int) -> bytes:
    """Return the same picture in other bytes: what follows the end of an image changes no pixel."""
    return body + b"\n#" + str(serial).encode()


def read_pictures(folder: Path, printings: Path) -> tuple[list[Picture], Lexicon]:
    """Return the images of ``folder`` by name, and what the catalog knows of set codes."""
    lexicon, artists = read_catalogue(printings)
    names = _names(folder / NAMES)
    return [
        _picture(path, names.get(path.name, path.stem), artists)
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in SUFFIXES
    ], lexicon


def _picture(path: Path, name: str, artists: Mapping[str, set[str]]) -> Picture:
    known = sorted({artist for key in name_keys(name) for artist in artists.get(key, ())})
    return Picture(file=path.name, name=name, body=path.read_bytes(), context=ComputeContext(artists=tuple(known)))


def _names(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as lines:
        return {row["file"]: row["name"] for row in csv.DictReader(lines)}
