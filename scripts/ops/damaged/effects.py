"""Kinds of damage as pure functions: an RGB picture, a random generator and parameters in, a picture out.

What depends on the picture's size is given per its longer side, so that it is as bad for a small picture as for a
large one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageEnhance, ImageFilter

from cardpicker.stage_c.imaging.geometry import BLEED_MM, CARD_HEIGHT_MM, CARD_WIDTH_MM
from scripts.ops.damaged.grounds import BLACK, border_color, table

#: Width to height above which a picture of a card is taken to have bleed: between that without and that with it.
_BLEED_RATIO = (CARD_WIDTH_MM / CARD_HEIGHT_MM + (CARD_WIDTH_MM + 2 * BLEED_MM) / (CARD_HEIGHT_MM + 2 * BLEED_MM)) / 2
#: Of the sensor's noise in gray levels: what is there in the dark, and the variance that each gray level adds.
_DARK_NOISE, _SHOT_NOISE = 3.0, 0.5


def unchanged(image: Image.Image, draw: np.random.Generator) -> Image.Image:
    """Return the picture itself."""
    return image


def scaled(image: Image.Image, draw: np.random.Generator, *, factor: float) -> Image.Image:
    """Return the picture at ``factor`` of its size."""
    return image.resize(_times(image.size, factor, factor), Image.Resampling.LANCZOS)


def reduced(image: Image.Image, draw: np.random.Generator, *, longest_px: int) -> Image.Image:
    """Return the picture with ``longest_px`` on its longer side."""
    return scaled(image, draw, factor=longest_px / max(image.size))


def blurred(image: Image.Image, draw: np.random.Generator, *, per_mille: float) -> Image.Image:
    """Return the picture out of focus; the Gaussian's sigma is in thousandths of the longer side."""
    return image.filter(ImageFilter.GaussianBlur(per_mille * max(image.size) / 1000))


def noisy(image: Image.Image, draw: np.random.Generator, *, strength: float) -> Image.Image:
    """Return the picture with a sensor's noise: more of it where there is more light, each channel for itself."""
    pixels = np.asarray(image, dtype=np.float32)
    sigma = strength * np.sqrt(_DARK_NOISE**2 + _SHOT_NOISE * pixels)
    return _picture(pixels + sigma * draw.standard_normal(pixels.shape, dtype=np.float32))


def rotated(image: Image.Image, draw: np.random.Generator, *, degrees: float) -> Image.Image:
    """Return the whole picture turned one way or the other, on a ground of its border's color."""
    angle = degrees if draw.random() < 0.5 else -degrees
    return image.rotate(angle, Image.Resampling.BICUBIC, expand=True, fillcolor=border_color(image))


def mirrored_bleed(image: Image.Image, draw: np.random.Generator, *, bleed_mm: float = BLEED_MM) -> Image.Image:
    """Return the picture with its edges mirrored outward."""
    by = _px(image, bleed_mm)
    return Image.fromarray(np.pad(np.asarray(image), ((by, by), (by, by), (0, 0)), mode="symmetric"))


def plain_bleed(image: Image.Image, draw: np.random.Generator, *, bleed_mm: float = BLEED_MM) -> Image.Image:
    """Return the picture with more of its border's color around it."""
    by = _px(image, bleed_mm)
    return _on(Image.new("RGB", _times(image.size, 1, 1, 2 * by), border_color(image)), image, (by, by))


def trimmed(image: Image.Image, draw: np.random.Generator, *, too_far_mm: float) -> Image.Image:
    """Return the picture without its bleed, or, where its shape says that it has none, cut into by ``too_far_mm``."""
    has_bleed = min(image.size) / max(image.size) > _BLEED_RATIO
    full_mm = CARD_WIDTH_MM + 2 * BLEED_MM if has_bleed else CARD_WIDTH_MM
    by = round((BLEED_MM if has_bleed else too_far_mm) * min(image.size) / full_mm)
    return image.crop((by, by, image.width - by, image.height - by))


def inset_on_black(image: Image.Image, draw: np.random.Generator, *, margin: float) -> Image.Image:
    """Return the picture on a black ground, ``margin`` of its longer side at each edge."""
    by = round(margin * max(image.size))
    return _on(Image.new("RGB", _times(image.size, 1, 1, 2 * by), BLACK), image, (by, by))


def inset_on_table(image: Image.Image, draw: np.random.Generator, *, margin: float) -> Image.Image:
    """Return the picture on a table, ``margin`` of its longer side at each edge."""
    by = round(margin * max(image.size))
    return _on(table(_times(image.size, 1, 1, 2 * by), draw), image, (by, by))


def off_center(image: Image.Image, draw: np.random.Generator, *, margin: float) -> Image.Image:
    """Return the picture on a ground of its border's color, at a place that is not the middle.

    Args:
        margin: of the longer side, at each edge if it lay in the middle.
    """
    by = round(margin * max(image.size))
    place = round(by * draw.uniform(0.1, 1.9)), round(by * draw.uniform(0.1, 1.9))
    return _on(Image.new("RGB", _times(image.size, 1, 1, 2 * by), border_color(image)), image, place)


def toned(
    image: Image.Image, draw: np.random.Generator, *, brightness: float = 1.0, contrast: float = 1.0, gamma: float = 1.0
) -> Image.Image:
    """Return the picture brighter or darker, of more or less contrast, and with another gamma; 1 leaves each as it is."""
    image = ImageEnhance.Contrast(ImageEnhance.Brightness(image).enhance(brightness)).enhance(contrast)
    levels = [round(255 * (level / 255) ** gamma) for level in range(256)]
    return image.point(levels * 3)


def tinted(image: Image.Image, draw: np.random.Generator, *, strength: float) -> Image.Image:
    """Return the picture as under warm or under cold light."""
    warm, cold = 1 + strength / 2, 1 - strength
    gains = (warm, 1.0, cold) if draw.random() < 0.5 else (cold, 1.0, warm)
    return _picture(np.asarray(image, dtype=np.float32) * np.array(gains, dtype=np.float32))


def stretched(image: Image.Image, draw: np.random.Generator, *, factor: float) -> Image.Image:
    """Return the picture wider or higher by ``factor``, and not both."""
    wide, high = (factor, 1.0) if draw.random() < 0.5 else (1.0, factor)
    return image.resize(_times(image.size, wide, high), Image.Resampling.BICUBIC)


def perspective(image: Image.Image, draw: np.random.Generator, *, strength: float) -> Image.Image:
    """Return the picture seen not quite from above: each corner moves inward by up to ``strength`` of either side."""
    width, height = image.size
    corners = np.array([(0, 0), (width, 0), (width, height), (0, height)], dtype=np.float64)
    inward = np.array([(1, 1), (-1, 1), (-1, -1), (1, -1)]) * draw.uniform(0, strength, (4, 2)) * (width, height)
    return image.transform(
        image.size,
        Image.Transform.PERSPECTIVE,
        _homography(corners + inward, corners),
        Image.Resampling.BICUBIC,
        fillcolor=border_color(image),
    )


def sharpened(image: Image.Image, draw: np.random.Generator, *, per_mille: float, percent: int) -> Image.Image:
    """Return the picture with halos: an unsharp mask, its radius in thousandths of the longer side."""
    radius = per_mille * max(image.size) / 1000
    return image.filter(ImageFilter.UnsharpMask(radius=radius, percent=percent, threshold=0))


def moire(image: Image.Image, draw: np.random.Generator, *, strength: float) -> Image.Image:
    """Return the picture as photographed off a screen: slanted waves, of another phase in each color."""
    width, height = image.size
    angle, period = draw.uniform(0, np.pi), draw.uniform(0.004, 0.012) * max(image.size)
    ys, xs = np.mgrid[0:height, 0:width].astype(np.float32)
    along = (xs * np.cos(angle) + ys * np.sin(angle)) * (2 * np.pi / period)
    phases = np.array((0.0, 2.1, 4.2), dtype=np.float32)
    waves = 1 - strength * (0.5 + 0.5 * np.sin(along[..., None] + phases))
    return _picture(np.asarray(image, dtype=np.float32) * waves)


def scan_lines(image: Image.Image, draw: np.random.Generator, *, per_mille: float, strength: float) -> Image.Image:
    """Return the picture with darker rows at an even distance, given in thousandths of the longer side."""
    period = max(3, round(per_mille * max(image.size) / 1000))
    pixels = np.asarray(image, dtype=np.float32).copy()
    pixels[int(draw.integers(period)) :: period] *= 1 - strength
    return _picture(pixels)


def _homography(source: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the eight coefficients by which Pillow finds, for a place of the result, where it was in the picture."""
    rows: list[list[float]] = []
    for (x, y), (u, v) in zip(source, target, strict=True):
        rows += [[x, y, 1, 0, 0, 0, -u * x, -u * y], [0, 0, 0, x, y, 1, -v * x, -v * y]]
    return tuple(float(value) for value in np.linalg.solve(np.array(rows), target.reshape(8)))


def _picture(pixels: NDArray[np.float32]) -> Image.Image:
    return Image.fromarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))


def _px(image: Image.Image, mm: float) -> int:
    return round(mm * min(image.size) / CARD_WIDTH_MM)


def _times(size: tuple[int, int], wide: float, high: float, more: int = 0) -> tuple[int, int]:
    return max(1, round(size[0] * wide) + more), max(1, round(size[1] * high) + more)


def _on(ground: Image.Image, image: Image.Image, place: tuple[int, int]) -> Image.Image:
    ground.paste(image, place)
    return ground
