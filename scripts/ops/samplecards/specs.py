"""What a sample card is, apart from what it shows: shared types, no drawing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Style(Enum):
    """Where a card prints its facts; the value is the truth file's ``frame``."""

    LINE_2015 = "2015/normal"
    LINE_2023 = "2015/2023-line"
    FOOTER_2003 = "2003/normal"
    FOOTER_1997 = "1997/normal"
    ARTIST_1993 = "1993/normal"
    BLANK = "blank"

    @property
    def is_modern(self) -> bool:
        """Return whether two rows stand at the bottom left, in a sans on black."""
        return self in (Style.LINE_2015, Style.LINE_2023)


class Fault(Enum):
    """How a file departs from a plain image."""

    NONE = "none"
    TRUNCATED = "truncated"
    ROTATED = "rotated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printing:
    """The facts of one printing that a card prints; ``None`` where the catalog does not know."""

    set_code: str
    number: str
    artist: str | None
    rarity: str
    year: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSpec:
    """One image of the catalog: what is printed on it and how the file is made."""

    file: str
    name: str  #: What the uploader called it, which is all the catalog is told.
    printed: str  #: ``set/number`` looked up in the printings, or ``set/number`` of no printing if ``invented``.
    style: Style
    tint: str  #: One of the keys of ``art.PALETTES``.
    title: str = ""
    type_line: str = ""
    text: str = ""
    cost: str = ""
    power: str = ""
    scene: str = "peaks"
    set_size: int | None = None
    dpi: int = 300
    bleed: bool = False
    white_border: bool = False
    centered_footer: bool = False
    rounded_corners: bool = False
    language: str = "EN"
    rarity: str = ""  #: Letter printed instead of the printing's own, as tokens do.
    legal: str = ""  #: Printed instead of the copyright line.
    invented: Printing | None = None
    fault: Fault = Fault.NONE
    kind: str = "proxy-render"
    expect: str = "printing"
    frame: str = ""  #: The truth file's frame where it is not the style's.
    copies: tuple[str, ...] = ()  #: Further files with the same bytes.
