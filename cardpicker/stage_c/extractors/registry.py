"""The extractors, in the order they run, with their versions.

Raise a version whenever the same image would give another reading: the manifest changes, and evidence becomes due.
Modules are imported when they first run, so that the manifest costs neither numpy nor an OCR engine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading

if TYPE_CHECKING:
    from cardpicker.stage_c.imaging.decode import NormalizedImage

_PACKAGE = "cardpicker.stage_c.extractors"
_Extract = Callable[["NormalizedImage", Mapping[str, Reading], ComputeContext, Lexicon], Reading]


class Extractor(Protocol):
    """Reads one thing off an image, given what was read before it."""

    @property
    def name(self) -> str:
        """Key of its reading."""

    @property
    def version(self) -> int:
        """Raised whenever its readings may change."""

    @property
    def needs(self) -> tuple[str, ...]:
        """The extractors whose readings it uses; when one of them is stale, so is it."""

    def extract(
        self, image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
    ) -> Reading:
        """Return the reading; null values where nothing was read."""


@dataclass(frozen=True, slots=True)
class ModuleExtractor:
    """The extractor that is the module of the same name in this package."""

    name: str
    version: int
    needs: tuple[str, ...] = ()

    def extract(
        self, image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
    ) -> Reading:
        """Run the module's ``extract``."""
        run = cast(_Extract, import_module(f"{_PACKAGE}.{self.name}").extract)
        return run(image, so_far, context, lexicon)


_TEXT = ("bottom_text",)  # Also the way up that the text settled, which every crop needs.

EXTRACTORS: tuple[Extractor, ...] = (
    ModuleExtractor("bottom_text", 8),
    ModuleExtractor("geometry", 3, _TEXT),
    ModuleExtractor("collector_line", 4, _TEXT),
    ModuleExtractor("the_list_mark", 3, _TEXT),
    ModuleExtractor("legal_line", 3, _TEXT),
    ModuleExtractor("artist", 2, (*_TEXT, "collector_line")),
    ModuleExtractor("art_hash", 3, _TEXT),
    ModuleExtractor("quality", 4, _TEXT),
    ModuleExtractor("corners", 1),
    ModuleExtractor("frame", 2, (*_TEXT, "collector_line", "artist", "quality")),
)


def unchanged(versions: Mapping[str, int]) -> frozenset[str]:
    """Return the extractors whose readings of these ``versions`` are today's: neither they nor what they need changed."""
    kept: set[str] = set()
    for extractor in EXTRACTORS:
        if versions.get(extractor.name) == extractor.version and kept.issuperset(extractor.needs):
            kept.add(extractor.name)
    return frozenset(kept)


def extractor_versions() -> dict[str, int]:
    """Return each extractor's version by name."""
    return {extractor.name: extractor.version for extractor in EXTRACTORS}


def manifest() -> str:
    """Return a short name of the set of extractor versions; equal only for equal sets."""
    pairs = ",".join(f"{name}={version}" for name, version in sorted(extractor_versions().items()))
    return f"c1-{hashlib.sha256(pairs.encode()).hexdigest()[:16]}"
