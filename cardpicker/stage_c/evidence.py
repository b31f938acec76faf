"""What Stage C reads off one image, as plain values that cross a process boundary and go into a JSON column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

JSONValue = str | int | float | bool | None | list["JSONValue"] | dict[str, "JSONValue"]
Reading = dict[str, JSONValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """What the catalog knows that helps reading: one per worker, the same for every image of a batch."""

    set_codes: frozenset[str] = frozenset()  #: Every known set code, lower case.


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownReadings:
    """What was read off a card's image before; worth something for the same bytes only."""

    image_sha256: str
    versions: Mapping[str, int]  #: Of the extractors that read it.
    readings: Mapping[str, Reading]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeContext:
    """What is known of one card before its image is read."""

    artists: tuple[str, ...] = ()  #: Artists of the printings with the card's name, in a stable order.
    known: KnownReadings | None = None  #: Readings of unchanged extractors are kept, so that only stale ones run.


@dataclass(frozen=True, slots=True, kw_only=True)
class CardEvidence:
    """One image's readings by extractor, with the few values that queries need promoted to fields."""

    image_sha256: str
    manifest: str
    extractor_versions: Mapping[str, int]
    readings: Mapping[str, Reading] = field(default_factory=dict)
    width_px: int
    height_px: int
    set_code: str = ""
    collector_number: str = ""
    rendition: str = ""  #: What the bytes were, as whoever fetched them knows; empty: not known.
    art_hash: int | None = None  #: Signed 64-bit pHash of the art box; None where the art is flat, never 0.
