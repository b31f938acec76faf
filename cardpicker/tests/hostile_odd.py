"""Pictures of cards in every shape that a sound picture may come in; each of them must be read."""

from __future__ import annotations

import io
import random
import struct
import zlib

import numpy as np
from PIL import Image, ImageDraw, PngImagePlugin

from cardpicker.tests.card_pictures import MODERN, card, encode
from cardpicker.tests.hostile_refused import a_card, insert_chunk, png_of

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
PX = 10  #: Per millimeter: enough for every line to be read.
_FLIPS = Image.Transpose
#: By orientation, the turn that makes the stored picture of an upright one.
_TURNS = {
    2: _FLIPS.FLIP_LEFT_RIGHT,
    3: _FLIPS.ROTATE_180,
    4: _FLIPS.FLIP_TOP_BOTTOM,
    5: _FLIPS.TRANSPOSE,
    6: _FLIPS.ROTATE_90,
    7: _FLIPS.TRANSVERSE,
    8: _FLIPS.ROTATE_270,
}


def flat(rng: random.Random) -> bytes:
    """A blank, which must get no hash."""
    color = rng.choice(((0, 0, 0), (255, 255, 255), (255, 0, 0), (128, 128, 128)))
    return encode(Image.new("RGB", (315 + rng.randrange(40), 440), color), rng.choice(("PNG", "JPEG", "BMP")))


def wrong_extension(rng: random.Random) -> bytes:
    """Any format that is read, under the name of a JPEG."""
    return encode(a_card(rng, PX), rng.choice(FORMATS[1:]))


def cmyk(rng: random.Random) -> bytes:
    """Four inks, as print shops have them."""
    return encode(a_card(rng, PX).convert("CMYK"), rng.choice(("JPEG", "TIFF")))


def deep(rng: random.Random) -> bytes:
    """Sixteen bits a sample, or floating point, gray or in color."""
    picture = a_card(rng, PX)
    gray = np.asarray(picture.convert("L"), dtype=np.uint16) * 257
    kind = rng.choice(("gray PNG", "gray TIFF", "color PNG", "float TIFF"))
    if kind == "color PNG":
        samples = (np.asarray(picture, dtype=np.uint16) * 257).astype(">u2")
        rows = b"".join(b"\0" + row.tobytes() for row in samples)
        return png_of(picture.width, picture.height, zlib.compress(rows, 1), depth=16, color=2)
    if kind == "float TIFF":
        return encode(Image.fromarray(gray.astype(np.float32) / 65535), "TIFF")
    return encode(Image.fromarray(gray), kind.split()[1])


def palette(rng: random.Random) -> bytes:
    """A palette, with or without a transparent entry that the picture does not use."""
    picture = a_card(rng, PX).quantize(255)
    return (
        encode(picture, "PNG", transparency=255) if rng.random() < 0.5 else encode(picture, rng.choice(("PNG", "GIF")))
    )


def gray_or_alpha(rng: random.Random) -> bytes:
    """Gray, gray with alpha, or color with alpha."""
    return encode(a_card(rng, PX).convert(rng.choice(("L", "LA", "RGBA"))), rng.choice(("PNG", "WEBP")))


def hidden_color(rng: random.Random) -> bytes:
    """Rounded corners that are transparent, over a color that must not be seen."""
    picture = a_card(rng, PX).convert("RGBA")
    mask = Image.new("L", picture.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, picture.width - 1, picture.height - 1), radius=30, fill=255)
    hidden = Image.new("RGBA", picture.size, (rng.randrange(256), 255, rng.randrange(256), 0))
    hidden.paste(picture, mask=mask)
    hidden.putalpha(mask)
    return encode(hidden, "PNG")


def one_bit(rng: random.Random) -> bytes:
    """Black and white only."""
    return encode(a_card(rng, PX).convert("1"), rng.choice(("PNG", "TIFF", "BMP")))


def turned_by_exif(rng: random.Random) -> bytes:
    """A picture that is stored turned or mirrored, with the tag that says so."""
    orientation = rng.randrange(1, 9)
    picture = a_card(rng, PX)
    stored = picture.transpose(_TURNS[orientation]) if orientation in _TURNS else picture
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encode(stored, rng.choice(("JPEG", "PNG", "WEBP")), exif=exif.tobytes())


def bad_exif(rng: random.Random) -> bytes:
    """An orientation that does not exist, or tags that are no tags."""
    exif = Image.Exif()
    exif[0x0112] = rng.choice((0, 9, 65_535))
    broken = b"Exif\x00\x00II*\x00\xff\xff\xff\x7f" + rng.randbytes(60)
    return encode(a_card(rng, PX), "JPEG", quality=92, exif=rng.choice((exif.tobytes(), broken)))


def turned(rng: random.Random) -> bytes:
    """A picture that lies on its side or its head, and says nothing about it."""
    turn = rng.choice((_FLIPS.ROTATE_90, _FLIPS.ROTATE_180, _FLIPS.ROTATE_270))
    return encode(a_card(rng, 12).transpose(turn), "JPEG", quality=92)


def animated(rng: random.Random) -> bytes:
    """A card, and then other frames: the first one counts."""
    out = io.BytesIO()
    first = a_card(rng, PX)
    others = [Image.new("RGB", first.size, (rng.randrange(255), 0, 0)) for _ in range(2)]
    kind = rng.choice(("GIF", "WEBP", "PNG", "TIFF"))
    lossless = {"lossless": True} if kind == "WEBP" else {}
    first.save(out, kind, save_all=True, append_images=others, **lossless)
    return out.getvalue()


def odd_text(rng: random.Random) -> bytes:
    """Comments with NUL, with half of a surrogate pair, or longer than the picture."""
    if rng.random() < 0.5:
        comment = rng.choice((b"\x00nul\x00", b"\xed\xa0\x80 half", rng.randbytes(60_000)))
        return encode(a_card(rng, PX), "JPEG", quality=92, comment=comment)
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", rng.choice(("a" * 5_000, "\x00", "nul\x00led")), zip=True)
    body = encode(a_card(rng, PX), pnginfo=info)
    return insert_chunk(body, b"iTXt", b"k\x00\x00\x00\x00\x00" + rng.choice((b"\xed\xa0\x80", b"\x00\xff\xfe")))


def bad_profile(rng: random.Random) -> bytes:
    """A color profile that is none, or of which a part is missing."""
    junk = rng.randbytes(50)
    if rng.random() < 0.5:
        return insert_chunk(encode(a_card(rng, PX)), b"iCCP", b"broken\x00\x00" + junk)
    body = encode(a_card(rng, PX), "JPEG", quality=92)
    segment = b"ICC_PROFILE\x00\x02\x05" + junk
    return body[:2] + b"\xff\xe2" + struct.pack(">H", len(segment) + 2) + segment + body[2:]


def stuffed(rng: random.Random) -> bytes:
    """A JPEG with megabytes of application data before its picture."""
    body = encode(a_card(rng, PX), "JPEG", quality=92)
    segment = b"\xff\xec" + struct.pack(">H", 65_000) + rng.randbytes(64_998)
    return body[:2] + segment * rng.randrange(20, 60) + body[2:]


def trailing(rng: random.Random) -> bytes:
    """Garbage, or another file, after the picture."""
    tail = rng.choice((rng.randbytes(3_000), b"PK\x03\x04" + rng.randbytes(300), b"\xff\xd9" * 50, bytes(2_000)))
    return encode(a_card(rng, PX), rng.choice(("JPEG", "PNG", "WEBP")), quality=92) + tail


def encodings(rng: random.Random) -> bytes:
    """Rarer ways to write a format: progressive, gray, packed."""
    picture = a_card(rng, PX)
    return rng.choice(
        (
            encode(picture, "JPEG", progressive=True),
            encode(picture.convert("L"), "JPEG"),
            encode(picture, "JPEG", subsampling=0, restart_marker_rows=1),
            encode(picture, "TIFF", compression="tiff_lzw"),
            encode(picture, "TIFF", compression="jpeg"),
            encode(picture, "WEBP", lossless=True),
        )
    )


def quotes(rng: random.Random) -> bytes:
    """Quotes in the small print, which some table formats take for their own."""
    artist = rng.choice(('"ACH! HANS, RUN!"', 'JOHN "AVON', "D'AVON"))
    return encode(card((*MODERN[:1], (4.0, 85.6, f"MKM * EN   {artist}")), px_per_mm=12, seed=rng.randrange(99)))


def strip(rng: random.Random) -> bytes:
    """A picture of a shape that no card has."""
    size = rng.choice(((15_000, 100), (100, 9_000), (3_000, 96)))
    return encode(a_card(rng).resize(size), rng.choice(("JPEG", "PNG")))
