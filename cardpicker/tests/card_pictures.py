"""Synthetic cards for the tests of Stage C's pure half: plain shapes and Pillow's bundled font, no file needed."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

PX_PER_MM = 12
Line = tuple[float, float, str]  #: Left and baseline in card millimeters, and the text.

MODERN: tuple[Line, ...] = ((4.0, 83.8, "123/287 R"), (4.0, 85.6, "MKM * EN   JOHN AVON"))


def art(seed: int = 7, size: tuple[int, int] = (64, 48)) -> Image.Image:
    """Return blobs of color that no other seed gives."""
    noise = np.random.default_rng(seed).integers(0, 255, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize(size, Image.Resampling.BICUBIC)


def card(
    lines: Sequence[Line] = MODERN,
    *,
    bleed_mm: float = 0.0,
    seed: int = 7,
    px_per_mm: int = PX_PER_MM,
    frame_bottom_mm: float = 80.5,
) -> Image.Image:
    """Return a black-bordered card with a title, an art box, a text box and ``lines`` in light small print."""
    size = (round((63 + 2 * bleed_mm) * px_per_mm), round((88 + 2 * bleed_mm) * px_per_mm))
    picture = Image.new("RGB", size, (18, 16, 14))
    draw = ImageDraw.Draw(picture)

    def px(x_mm: float, y_mm: float) -> tuple[int, int]:
        return round((x_mm + bleed_mm) * px_per_mm), round((y_mm + bleed_mm) * px_per_mm)

    draw.rectangle((*px(2.8, 2.9), *px(60.2, frame_bottom_mm)), fill=(120, 150, 110))
    left, top = px(4.5, 10.0)
    right, bottom = px(58.5, 48.0)
    picture.paste(art(seed, (right - left, bottom - top)), (left, top))
    draw.rectangle((*px(4.5, 54.0), *px(58.5, 79.0)), fill=(226, 222, 210))
    draw.text(px(5.0, 4.0), "Abstract Beast", fill=(10, 10, 10), font=ImageFont.load_default(size=3.2 * px_per_mm))
    for x_mm, base_mm, text in lines:
        font = ImageFont.load_default(size=1.75 * px_per_mm)
        draw.text(px(x_mm, base_mm), text, fill=(235, 235, 235), font=font, anchor="ls")
    return picture


def borderless_on_ground(ground_mm: float, bleed_mm: float = 0.0) -> Image.Image:
    """Return a card whose dark art runs to its sides, on a plain ground of that width all around."""
    inner = card(bleed_mm=bleed_mm)
    inner.paste((60, 20, 70), (0, inner.height // 5, inner.width, inner.height * 4 // 5))
    margin = round(ground_mm * PX_PER_MM)
    picture = Image.new("RGB", (inner.width + 2 * margin, inner.height + 2 * margin), (150, 120, 90))
    picture.paste(inner, (margin, margin))
    return picture


def encode(picture: Image.Image, format: str = "PNG", **options: object) -> bytes:
    """Return ``picture`` as the bytes of a file."""
    out = io.BytesIO()
    picture.save(out, format, **options)
    return out.getvalue()


def gray(picture: Image.Image) -> NDArray[np.uint8]:
    """Return ``picture`` as gray levels."""
    return np.asarray(picture.convert("L"), dtype=np.uint8)
