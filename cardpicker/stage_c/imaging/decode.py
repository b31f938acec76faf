"""Bytes to pixels, once per image, within a bounded memory and with every refusal named.

The type comes from the bytes, never from a name or a header of the transport. Whatever a decoder does with hostile
bytes ends as an `Unusable`; no exception leaves this module. Large pictures are reduced by a whole factor while they
are decoded, so that one picture always takes the same path to the same pixels.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

from cardpicker.stage_c.outcomes import Unusable, UnusableKind

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
MAX_PIXELS = 80_000_000  #: Of the header; beyond it nothing is decoded.
MAX_PIXELS_WHOLE = 32_000_000  #: Where the decoder must hold every pixel at once: all but baseline JPEG.
MAX_SIDE_PX = 20_000
MIN_SIDE_PX = 96
WORK_LONG_SIDE_PX = 1400  #: A reduced picture keeps at least this: 16 px/mm over a card with bleed.
BACKGROUND = (255, 255, 255)  #: Under transparent pixels, whatever color they hide.

_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"BM", "BMP"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
)
_FOREIGN = (
    (b"%PDF", "PDF"),
    (b"8BPS", "Photoshop"),
    (b"PK\x03\x04", "ZIP"),
    (b"\x00\x00\x01\x00", "ICO"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\x00\x00\x00\x0cJXL ", "JPEG XL"),
    (b"\x00\x00\x00\x0cjP  ", "JPEG 2000"),
    (b"II+\x00", "BigTIFF"),
    (b"MM\x00+", "BigTIFF"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormalizedImage:
    """One picture as upright 8-bit pixels; its arrays are read-only."""

    rgb: NDArray[np.uint8]  #: Shape (height, width, 3).
    gray: NDArray[np.uint8]  #: Shape (height, width), ITU-R 601 luma of ``rgb``.
    format: str  #: Of the bytes: one of ``FORMATS``.
    mode: str  #: Pillow's mode before normalizing: "RGB", "CMYK", "I;16", …
    source_width_px: int  #: As displayed, before any reduction.
    source_height_px: int
    reduced_by: int  #: Whole factor of the reduction; 1 is none.

    @property
    def width_px(self) -> int:
        """Width of the normalized pixels."""
        return int(self.gray.shape[1])

    @property
    def height_px(self) -> int:
        """Height of the normalized pixels."""
        return int(self.gray.shape[0])


class _RefusedError(Exception):
    """Carries a refusal out of the decoder's depths; never leaves this module."""

    def __init__(self, kind: UnusableKind, detail: str) -> None:
        super().__init__(detail)
        self.outcome = Unusable(kind=kind, detail=detail)


def decode(image: bytes) -> NormalizedImage | Unusable:
    """Return the picture in ``image``, or why it cannot be read."""
    try:
        kind = _sniff(image)
        with _strict_pillow():
            return _normalize(image, kind)
    except _RefusedError as refused:
        return refused.outcome
    except (Image.DecompressionBombError, Image.DecompressionBombWarning, MemoryError):
        return Unusable(kind=UnusableKind.TOO_MANY_PIXELS, detail="unpacks to more pixels than any card has")
    except Exception as error:  # decoders raise anything at all on hostile bytes
        return _broken(error)


def _broken(error: Exception) -> Unusable:
    text = f"{type(error).__name__}: {error}".splitlines()[0][:200]
    short = any(word in str(error).lower() for word in ("truncated", "not enough", "broken data stream", "incomplete"))
    return Unusable(kind=UnusableKind.TRUNCATED if short else UnusableKind.CORRUPT, detail=text)


def _sniff(image: bytes) -> str:
    if not image:
        raise _RefusedError(UnusableKind.EMPTY, "zero bytes")
    head = bytes(image[:64])
    for magic, name in _MAGIC:
        if head.startswith(magic):
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    for magic, name in _FOREIGN:
        if head.startswith(magic):
            raise _RefusedError(UnusableKind.UNSUPPORTED_TYPE, f"{name} is not read; {', '.join(FORMATS)} are")
    if head[4:8] == b"ftyp":
        brand = head[8:12].decode("ascii", "replace")
        raise _RefusedError(
            UnusableKind.UNSUPPORTED_TYPE, f"ISO media of brand {brand!r} (HEIC, AVIF, video) is not read"
        )
    text = bytes(image[:1024]).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if text.startswith((b"<svg", b"<?xml")) and b"<svg" in text:
        raise _RefusedError(UnusableKind.UNSUPPORTED_TYPE, "SVG is not read")
    if text.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        raise _RefusedError(UnusableKind.NOT_AN_IMAGE, "an HTML page, not an image")
    raise _RefusedError(UnusableKind.NOT_AN_IMAGE, f"no known image signature in {head[:8]!r}")


@contextmanager
def _strict_pillow() -> Iterator[None]:
    """Pillow that raises on short data and on bombs, whatever another library has set for the process."""
    tolerated = ImageFile.LOAD_TRUNCATED_IMAGES
    ImageFile.LOAD_TRUNCATED_IMAGES = False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = tolerated


def _normalize(image: bytes, kind: str) -> NormalizedImage:
    _check_whole(image, kind)
    with Image.open(io.BytesIO(image), formats=(kind,)) as picture:
        width, height = picture.size
        mode = picture.mode
        factor = max(1, max(width, height) // WORK_LONG_SIDE_PX)
        _check_size(picture, kind)
        if kind == "JPEG" and factor > 1:
            picture.draft(None, (-(-width // factor), -(-height // factor)))
        picture.load()
        orientation = _orientation(picture)
        rgb = _flatten(picture)
    left = max(1, max(rgb.size) // WORK_LONG_SIDE_PX)
    if left > 1:
        rgb = rgb.reduce(left)
    rgb = _turn(rgb, orientation)
    if orientation >= 5:
        width, height = height, width
    return NormalizedImage(
        rgb=_frozen(rgb),
        gray=_frozen(rgb.convert("L")),
        format=kind,
        mode=mode,
        source_width_px=width,
        source_height_px=height,
        reduced_by=max(1, round(max(width, height) / max(rgb.size))),
    )


def _check_size(picture: Image.Image, kind: str) -> None:
    width, height = picture.size
    size = f"{width}×{height} px"
    if max(width, height) > MAX_SIDE_PX:
        raise _RefusedError(UnusableKind.TOO_MANY_PIXELS, f"{size}: a side is longer than {MAX_SIDE_PX} px")
    streamed = kind == "JPEG" and not picture.info.get("progressive")
    limit = MAX_PIXELS if streamed else MAX_PIXELS_WHOLE
    if width * height > limit:
        raise _RefusedError(UnusableKind.TOO_MANY_PIXELS, f"{size}: more than {limit // 1_000_000} megapixels")
    if min(width, height) < MIN_SIDE_PX:
        raise _RefusedError(UnusableKind.TOO_SMALL, f"{size}: a side is shorter than {MIN_SIDE_PX} px")


def _check_whole(image: bytes, kind: str) -> None:
    """Refuse what a decoder would accept although its end is missing.

    A JPEG whose last scan lines are short is padded by some decoders; a PNG or WebP says its own length.
    """
    if kind == "JPEG" and image.rfind(b"\xff\xd9", 2) < 0:
        raise _RefusedError(UnusableKind.TRUNCATED, "the JPEG has no end marker")
    if kind == "PNG" and b"IEND" not in image[-65536:] and b"IEND" not in image:
        raise _RefusedError(UnusableKind.TRUNCATED, "the PNG has no end chunk")
    if kind == "WEBP" and len(image) >= 8 and struct.unpack("<I", image[4:8])[0] + 8 > len(image):
        raise _RefusedError(UnusableKind.TRUNCATED, "the WebP is shorter than its header says")


def _orientation(picture: Image.Image) -> int:
    """Return the EXIF orientation, 1 to 8; broken or absent metadata mean upright."""
    try:
        value = picture.getexif().get(0x0112, 1)
    except Exception:  # odd metadata do not spoil a sound picture
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def _turn(picture: Image.Image, orientation: int) -> Image.Image:
    turn = _TURNS.get(orientation)
    return picture if turn is None else picture.transpose(turn)


def _flatten(picture: Image.Image) -> Image.Image:
    """Return ``picture`` as 8-bit RGB on the fixed background."""
    if picture.mode.startswith("I") or picture.mode == "F":
        return _scale_deep(picture)
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        rgba = picture.convert("RGBA")
        ground = Image.new("RGBA", rgba.size, (*BACKGROUND, 255))
        ground.alpha_composite(rgba)
        return ground.convert("RGB")
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def _scale_deep(picture: Image.Image) -> Image.Image:
    """Scale 16-bit and float samples to 8 bits; Pillow's own conversion clips them to white."""
    deep = np.nan_to_num(np.asarray(picture).astype(np.float32))
    top = float(deep.max(initial=0.0))
    if picture.mode == "F":
        full = 1.0 if top <= 1.0 else 255.0 if top <= 255.0 else 65535.0
    else:
        full = 255.0 if picture.mode == "I" and top <= 255.0 else 65535.0
    scaled = np.clip(deep * (255.0 / full) + 0.5, 0, 255).astype(np.uint8)
    return Image.fromarray(scaled, "L").convert("RGB")


def _frozen(picture: Image.Image) -> NDArray[np.uint8]:
    pixels = np.asarray(picture, dtype=np.uint8)  # One copy; a second would only be thrown away.
    pixels.setflags(write=False)
    return pixels
