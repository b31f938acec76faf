"""Bytes that no reader may take for a card's picture: cut, broken, foreign, oversized, or no picture at all."""

from __future__ import annotations

import io
import random
import struct
import zlib
from functools import cache

from PIL import Image, features

from cardpicker.tests.card_pictures import card, encode

SIDES = (9_500, 13_500, 19_000, 40_000)  #: Of a picture that unpacks to far more than any card has.


def png_chunk(kind: bytes, body: bytes) -> bytes:
    """Return one chunk of a PNG."""
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_of(width: int, height: int, rows: bytes, *, depth: int = 1, color: int = 0) -> bytes:
    """Return a PNG of that header, whatever its rows are."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")


@cache
def drawn(seed: int, px_per_mm: int = 6) -> Image.Image:
    """Return one of a few drawn cards; drawing is dearer than spoiling."""
    return card(px_per_mm=px_per_mm, seed=seed)


def a_card(rng: random.Random, px_per_mm: int = 6) -> Image.Image:
    """Return a drawn card with a spot in its art that no other has: equal files would be read once and copied."""
    picture = drawn(rng.randrange(6), px_per_mm).copy()
    left, top = (round(mm * px_per_mm) for mm in (10 + 40 * rng.random(), 15 + 25 * rng.random()))
    picture.paste(tuple(rng.randbytes(3)), (left, top, left + 2 * px_per_mm, top + 2 * px_per_mm))
    return picture


def bomb(rng: random.Random) -> bytes:
    """A few kilobytes that unpack to a gigabyte."""
    side = rng.choice(SIDES)
    return png_of(side, side, zlib.compress(bytes(1_000_000)))


def huge_header(rng: random.Random) -> bytes:
    """A small file of any format whose header promises a wall of pixels."""
    side = rng.choice((17_000, 30_000, 60_000))
    made = {
        "JPEG": b"\xff\xd8\xff\xc0\x00\x11\x08"
        + struct.pack(">HH", side, side)
        + b"\x03\x01\x11\0\x02\x11\1\x03\x11\1",
        "GIF": b"GIF89a" + struct.pack("<HH", side, side) + b"\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0",
        "BMP": b"BM" + struct.pack("<IIIIiiHHIIIIII", 60, 0, 54, 40, side, side, 1, 24, 0, 0, 0, 0, 0, 0),
        "TIFF": _tiff_header(side),
    }
    kind = rng.choice(sorted(made))
    return made[kind] + rng.randbytes(400) + b"\xff\xd9"


def _tiff_header(side: int) -> bytes:
    tags = ((256, 4, side), (257, 4, side), (258, 3, 8), (259, 3, 1), (262, 3, 1), (273, 4, 200), (278, 4, side))
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in (*tags, (279, 4, 400)))
    return b"II*\0" + struct.pack("<IH", 8, len(tags) + 1) + entries + struct.pack("<I", 0)


def no_size(rng: random.Random) -> bytes:
    """A header without a width or a height."""
    return rng.choice(
        (
            png_of(0, 880, zlib.compress(bytes(10))),
            png_of(0, 0, zlib.compress(b"")),
            b"\xff\xd8\xff\xc0\x00\x0b\x08\0\0\0\0\x01\x01\x11\0\xff\xd9",
            b"GIF89a\0\0\0\0\x80\0\0\0\0\0\xff\xff\xff;",
        )
    ) + rng.randbytes(20)


def cut(rng: random.Random, format: str, **options: object) -> bytes:
    """A picture that ends too soon; of some formats a few last bytes are no loss, so it is never only those."""
    body = encode(a_card(rng), format, **options)
    return body[: int(len(body) * rng.choice((0.1, 0.5, 0.9, 0.97)))]


def noise(rng: random.Random) -> bytes:
    """Bytes without a meaning."""
    return b"\x01" + rng.randbytes(rng.randrange(10, 5_000))


def broken_jpeg(rng: random.Random) -> bytes:
    """The start and the end of a JPEG with noise between."""
    return b"\xff\xd8\xff\xe0" + rng.randbytes(600).replace(b"\xff", b"\x00") + b"\xff\xd9"


def broken_png(rng: random.Random) -> bytes:
    """A PNG with bytes turned over."""
    return _flipped(rng, encode(a_card(rng)))


def broken_lossy(rng: random.Random) -> bytes:
    """A picture with bytes turned over in a format that has no sums to tell."""
    return _flipped(rng, encode(a_card(rng), rng.choice(("WEBP", "GIF", "TIFF", "BMP", "JPEG"))))


def _flipped(rng: random.Random, whole: bytes) -> bytes:
    body = bytearray(whole)
    for _ in range(40):
        body[rng.randrange(60, len(body) - 60)] ^= 0xFF
    return bytes(body)


def endless_tiff(rng: random.Random) -> bytes:
    """A TIFF whose list of pictures leads back to itself, and whose tags point outside the file."""
    entries = struct.pack("<HHII", 256, 4, 1, 700) + struct.pack("<HHII", 273, 4, 50_000, 0xFFFFFF00)
    return b"II*\0" + struct.pack("<IH", 8, 2) + entries + struct.pack("<I", 8) + rng.randbytes(100)


def foreign(rng: random.Random) -> bytes:
    """A file of another kind under an image's name."""
    if features.check("avif") and rng.random() < 0.2:
        return encode(a_card(rng), "AVIF")
    heads = (b"%PDF-1.7\n", b"8BPS\x00\x01", b"PK\x03\x04", b"\x00\x00\x00\x18ftypheic", b"\x00\x00\x00\x1cftypavif")
    others = (b"\x00\x00\x01\x00\x01\x00", b"\xff\x0a", b"\x00\x00\x00\x0cjP  \r\n\x87\n", b"II+\x00\x08\x00")
    return rng.choice((*heads, *others, b'<svg xmlns="http://www.w3.org/2000/svg">')) + rng.randbytes(200)


def page(rng: random.Random) -> bytes:
    """A page that a server sent instead of the file."""
    start = rng.choice((b"<!DOCTYPE html>", b"\n<html>", b"  <head>", b"\xef\xbb\xbf<!doctype html>"))
    return start + b"<body>Sign in " + str(rng.randrange(10**9)).encode() + b"</body></html>"


def answer(rng: random.Random) -> bytes:
    """An error of an interface, or plain text, sent instead of the file."""
    number = str(rng.randrange(10**9)).encode()
    return rng.choice(
        (b'{"error": {"code": 500, "id": ' + number + b"}}", b"no such file " + number, b"\xef\xbb\xbf" + number)
    )


def tiny(rng: random.Random) -> bytes:
    """A picture with less room than a line of print."""
    color = (rng.randrange(256), rng.randrange(256), 9)
    return encode(Image.new("RGB", (rng.randrange(1, 90), rng.randrange(1, 90)), color))


def text_bomb(rng: random.Random) -> bytes:
    """A sound picture with a comment that unpacks to megabytes."""
    unpacked = bytes(rng.choice((2_000_000, 8_000_000)))
    return insert_chunk(encode(a_card(rng, 10)), b"zTXt", b"c\x00\x00" + zlib.compress(unpacked))


def profile_bomb(rng: random.Random) -> bytes:
    """A sound picture with a color profile that unpacks to fifty megabytes."""
    return insert_chunk(encode(a_card(rng, 10)), b"iCCP", b"p\x00\x00" + zlib.compress(bytes(50_000_000), 1))


def insert_chunk(png: bytes, kind: bytes, body: bytes) -> bytes:
    """Return ``png`` with a chunk right after its header."""
    return png[:33] + png_chunk(kind, body) + png[33:]


def without_data(rng: random.Random) -> bytes:
    """A PNG or GIF that is all header."""
    png = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", struct.pack(">IIBBBBB", 630, 880, 8, 2, 0, 0, 0))
    gif = b"GIF89a" + struct.pack("<HH", 630, 880) + b"\x80\0\0\0\0\0\xff\xff\xff;"
    out = io.BytesIO()
    out.write(rng.choice((png + png_chunk(b"IEND", b""), png_of(630, 880, zlib.compress(b""), depth=8, color=2), gif)))
    return out.getvalue() + rng.randbytes(8)
