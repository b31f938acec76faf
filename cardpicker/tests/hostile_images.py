"""A seeded stream of files that no reader likes, each with what must become of it.

The kinds are those of public bug reports: bombs, cut files, foreign formats under an image's name, odd modes, odd
metadata, flat pictures. A file that can still be read must be read; one that cannot must be refused by name.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from cardpicker.stage_c.outcomes import UnusableKind
from cardpicker.tests import hostile_odd as odd
from cardpicker.tests import hostile_refused as refused

Kinds = frozenset[UnusableKind]
Make = Callable[[random.Random], bytes]
READ: Kinds = frozenset()
CARD_NUMBER, CARD_SET = "123", "mkm"  #: What the drawn card prints.


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One file."""

    name: str
    kind: str
    body: bytes
    refused_as: Kinds  #: Any of these is a right name for it; none: it is a picture and must be read.
    or_read: bool = False  #: Decoders may also make a picture of it.
    is_card: bool = False  #: It must give the drawn card's number and set code.

    @property
    def is_blank(self) -> bool:
        """Whether its art must get no hash."""
        return self.kind == "flat picture"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    name: str
    make: Make
    refused_as: Kinds = READ
    or_read: bool = False
    is_card: bool = False


_CORRUPT = frozenset({UnusableKind.CORRUPT, UnusableKind.TRUNCATED})
_NO_IMAGE = frozenset({UnusableKind.NOT_AN_IMAGE})
_FOREIGN = frozenset({UnusableKind.UNSUPPORTED_TYPE})
_HUGE = frozenset({UnusableKind.TOO_MANY_PIXELS})
_SMALL = frozenset({UnusableKind.TOO_SMALL})


def _spoiled(name: str, make: Make, refused_as: Kinds, *, or_read: bool = False) -> _Kind:
    return _Kind(name=name, make=make, refused_as=refused_as, or_read=or_read)


def _card(name: str, make: Make) -> _Kind:
    return _Kind(name=name, make=make, is_card=True)


_KINDS: tuple[_Kind, ...] = (
    _spoiled("empty", lambda rng: b"", frozenset({UnusableKind.EMPTY})),
    _spoiled("noise", refused.noise, _NO_IMAGE),
    _spoiled("HTML page", refused.page, _NO_IMAGE | _FOREIGN),
    _spoiled("JSON or text", refused.answer, _NO_IMAGE),
    _spoiled("foreign format", refused.foreign, _FOREIGN | _NO_IMAGE),
    _spoiled("pixel bomb", refused.bomb, _HUGE),
    _spoiled("huge header", refused.huge_header, _HUGE | _CORRUPT),
    _spoiled("header without a size", refused.no_size, _CORRUPT | _SMALL),
    _spoiled("header without data", refused.without_data, _CORRUPT),
    _spoiled("tiny", refused.tiny, _SMALL),
    _spoiled("cut JPEG", partial(refused.cut, format="JPEG"), _CORRUPT),
    _spoiled("cut progressive JPEG", partial(refused.cut, format="JPEG", progressive=True), _CORRUPT),
    _spoiled("cut PNG", partial(refused.cut, format="PNG"), _CORRUPT),
    _spoiled("cut WebP", partial(refused.cut, format="WEBP"), _CORRUPT),
    _spoiled("cut GIF", partial(refused.cut, format="GIF"), _CORRUPT),
    _spoiled("cut BMP", partial(refused.cut, format="BMP"), _CORRUPT),
    _spoiled("cut TIFF", partial(refused.cut, format="TIFF"), _CORRUPT),
    _spoiled("broken JPEG", refused.broken_jpeg, _CORRUPT),
    _spoiled("broken PNG", refused.broken_png, _CORRUPT),
    _spoiled("flipped bytes", refused.broken_lossy, _CORRUPT, or_read=True),
    _spoiled("endless TIFF", refused.endless_tiff, _CORRUPT | _SMALL),
    _spoiled("text bomb", refused.text_bomb, _CORRUPT),
    _spoiled("profile bomb", refused.profile_bomb, _CORRUPT),
    _Kind(name="flat picture", make=odd.flat),
    _Kind(name="one bit", make=odd.one_bit),
    _Kind(name="strip", make=odd.strip),
    _card("wrong extension", odd.wrong_extension),
    _card("CMYK", odd.cmyk),
    _card("16 bit or float", odd.deep),
    _card("palette", odd.palette),
    _card("gray or alpha", odd.gray_or_alpha),
    _card("color under alpha", odd.hidden_color),
    _card("turned by EXIF", odd.turned_by_exif),
    _card("bad EXIF", odd.bad_exif),
    _card("turned", odd.turned),
    _card("animated", odd.animated),
    _card("odd text", odd.odd_text),
    _card("bad profile", odd.bad_profile),
    _card("stuffed with data", odd.stuffed),
    _card("trailing garbage", odd.trailing),
    _card("rare encoding", odd.encodings),
    _card("quotes in print", odd.quotes),
)
KIND_NAMES = tuple(kind.name for kind in _KINDS)


def hostile_files(count: int, seed: int = 1) -> Iterator[Hostile]:
    """Yield ``count`` files, the kinds in turn; equal seeds give equal bytes."""
    rng = random.Random(seed)
    for index in range(count):
        kind = _KINDS[index % len(_KINDS)]
        yield Hostile(
            name=f"{index:04d} {kind.name}",
            kind=kind.name,
            body=kind.make(rng),
            refused_as=kind.refused_as,
            or_read=kind.or_read,
            is_card=kind.is_card,
        )
