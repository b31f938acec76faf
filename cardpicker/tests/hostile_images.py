"""A seeded stream of files that no reader likes, each with what must become of it.

The kinds are those of public bug reports: bombs, cut files, foreign formats under an image's name, odd modes, odd
metadata, flat pictures. A file that can still be read must be read; one that cannot must be refused by name.
"""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, PngImagePlugin

from cardpicker.stage_c.outcomes import UnusableKind
from cardpicker.tests.card_pictures import card, encode

Kinds = frozenset[UnusableKind]
READ: Kinds = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hostile:
    """One file."""

    name: str
    body: bytes
    refused_as: Kinds  #: Any of these is a right name for it; none: it is a picture and must be read.
    is_card: bool = False  #: It must give the drawn card's number and set code.


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """Return one chunk of a PNG."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _insert_chunk(png: bytes, kind: bytes, body: bytes) -> bytes:
    return png[:33] + png_chunk(kind, body) + png[33:]


def _bomb(rng: random.Random) -> bytes:
    side = rng.choice((9_500, 13_500, 19_000, 40_000))
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    rows = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")


def _cut(rng: random.Random, format: str) -> bytes:
    body = encode(card(px_per_mm=6), format)
    return body[: int(len(body) * rng.choice((0.1, 0.5, 0.9, 0.99)))]


def _noise(rng: random.Random) -> bytes:
    return b"\x01" + rng.randbytes(rng.randrange(10, 5_000))


def _broken_jpeg(rng: random.Random) -> bytes:
    return b"\xff\xd8\xff\xe0" + rng.randbytes(600).replace(b"\xff", b"\x00") + b"\xff\xd9"


def _broken_png(rng: random.Random) -> bytes:
    body = bytearray(encode(card(px_per_mm=6)))
    for _ in range(40):
        body[rng.randrange(60, len(body) - 60)] ^= 0xFF
    return bytes(body)


def _foreign(rng: random.Random) -> bytes:
    heads = (b"%PDF-1.7\n", b"8BPS\x00\x01", b"PK\x03\x04", b"\x00\x00\x00\x18ftypheic", b"\x00\x00\x00\x1cftypavif")
    return rng.choice((*heads, b'<svg xmlns="http://www.w3.org/2000/svg">')) + rng.randbytes(200)


def _page(rng: random.Random) -> bytes:
    return rng.choice((b"<!DOCTYPE html>", b"\n<html>", b"  <head>")) + b"<body>Sign in</body></html>"


def _tiny(rng: random.Random) -> bytes:
    return encode(Image.new("RGB", (rng.randrange(1, 90), rng.randrange(1, 90)), (9, 9, 9)))


def _flat(rng: random.Random) -> bytes:
    color = rng.choice(((0, 0, 0), (255, 255, 255), (255, 0, 0), (128, 128, 128)))
    return encode(Image.new("RGB", (315, 440), color), rng.choice(("PNG", "JPEG", "BMP")))


def _odd_mode(rng: random.Random) -> bytes:
    picture = card(px_per_mm=10)
    mode = rng.choice(("CMYK", "P", "L", "RGBA", "16 bit"))
    if mode == "CMYK":
        return encode(picture.convert("CMYK"), "JPEG", quality=92)
    if mode == "16 bit":
        deep = np.asarray(picture.convert("L"), dtype=np.uint16) * 257
        return encode(Image.fromarray(deep))
    return encode(picture.convert(mode))


def _exif(rng: random.Random) -> bytes:
    orientation, turn = rng.choice(
        ((1, None), (3, Image.Transpose.ROTATE_180), (6, Image.Transpose.ROTATE_90), (8, Image.Transpose.ROTATE_270))
    )
    picture = card(px_per_mm=10)
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(picture.transpose(turn) if turn is not None else picture, "JPEG", quality=92, exif=exif.tobytes())


def _metadata(rng: random.Random) -> bytes:
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", rng.choice(("a" * 5_000, "\x00", "nul\x00led")), zip=True)
    body = encode(card(px_per_mm=10), pnginfo=info)
    return _insert_chunk(body, b"iCCP", b"broken\x00\x00" + rng.randbytes(50)) if rng.random() < 0.5 else body


def _text_bomb(rng: random.Random) -> bytes:
    body = encode(card(px_per_mm=10))
    return _insert_chunk(body, b"zTXt", b"c\x00\x00" + zlib.compress(bytes(rng.choice((2_000_000, 8_000_000)))))


def _animated(rng: random.Random) -> bytes:
    out = io.BytesIO()
    others = [Image.new("RGB", card(px_per_mm=8).size, (rng.randrange(255), 0, 0)) for _ in range(2)]
    card(px_per_mm=8).save(out, rng.choice(("GIF", "WEBP")), save_all=True, append_images=others)
    return out.getvalue()


def _trailing(rng: random.Random) -> bytes:
    return encode(card(px_per_mm=10), "JPEG", quality=92) + rng.randbytes(3_000)


_CORRUPT = frozenset({UnusableKind.CORRUPT, UnusableKind.TRUNCATED})
_FOREIGN = frozenset({UnusableKind.UNSUPPORTED_TYPE})
_MAKERS: tuple[tuple[str, Callable[[random.Random], bytes], Kinds, bool], ...] = (
    ("empty", lambda rng: b"", frozenset({UnusableKind.EMPTY}), False),
    ("noise", _noise, frozenset({UnusableKind.NOT_AN_IMAGE}), False),
    ("html page", _page, frozenset({UnusableKind.NOT_AN_IMAGE}), False),
    ("foreign format", _foreign, _FOREIGN, False),
    ("pixel bomb", _bomb, frozenset({UnusableKind.TOO_MANY_PIXELS}), False),
    ("tiny", _tiny, frozenset({UnusableKind.TOO_SMALL}), False),
    ("cut JPEG", lambda rng: _cut(rng, "JPEG"), _CORRUPT, False),
    ("cut PNG", lambda rng: _cut(rng, "PNG"), _CORRUPT, False),
    ("cut WebP", lambda rng: _cut(rng, "WEBP"), _CORRUPT, False),
    ("broken JPEG", _broken_jpeg, _CORRUPT, False),
    ("broken PNG", _broken_png, _CORRUPT, False),
    ("text bomb", _text_bomb, _CORRUPT, False),
    ("flat picture", _flat, READ, False),
    ("odd mode", _odd_mode, READ, True),
    ("turned by EXIF", _exif, READ, True),
    ("odd metadata", _metadata, READ, True),
    ("animated", _animated, READ, False),
    ("trailing garbage", _trailing, READ, True),
)


def hostile_files(count: int, seed: int = 1) -> Iterator[Hostile]:
    """Yield ``count`` files, the kinds in turn; equal seeds give equal bytes."""
    rng = random.Random(seed)
    for index in range(count):
        name, make, kinds, is_card = _MAKERS[index % len(_MAKERS)]
        yield Hostile(name=f"{index:04d} {name}", body=make(rng), refused_as=kinds, is_card=is_card)
