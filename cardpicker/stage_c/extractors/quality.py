"""How sound the image is: sharpness, a missing lower part, and the border's color. It measures and never judges."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.geometry import settled_fit
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.geometry import BoxMm, CardFit
from cardpicker.stage_c.imaging.levels import percentiles

#: Just inside the trim, clear of the rounded corners and of the collector line.
_SIDES: tuple[BoxMm, ...] = (
    (0.5, 12.0, 1.9, 76.0),
    (61.1, 12.0, 62.5, 76.0),
    (8.0, 0.5, 55.0, 1.9),
    (8.0, 86.2, 55.0, 87.5),
)
_FACE_MM: BoxMm = (3.0, 40.0, 60.0, 60.0)  #: The art's lower edge, the type line and text: every frame has edges here.
_EVEN_SPREAD = 28.0  #: Gray levels between the 10th and 90th percentile of a plain border.
FILL = 128  #: What decoders that tolerate a short JPEG paint the missing part with.


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return what the pixels say of the image itself."""
    fit = settled_fit(image, so_far)
    return {
        "truncated": has_filled_end(image.rgb),
        "sharpness": round(sharpness(image.gray, fit), 2),
        "border_color": border_color(image.rgb, fit),
        "mode": image.mode,
        "format": image.format,
    }


def has_filled_end(rgb: NDArray[np.uint8]) -> bool:
    """Whether at least the lowest twentieth is the flat mid-gray of a picture that was cut short and padded."""
    rows = max(4, rgb.shape[0] // 20)
    end = rgb[-rows:].astype(np.int16)
    return bool((np.abs(end - FILL) <= 1).all()) and bool((np.abs(rgb[: -4 * rows].astype(np.int16) - FILL) > 8).any())


def sharpness(gray: NDArray[np.uint8], fit: CardFit) -> float:
    """Return the variance of the Laplacian over the card's face at 8 px/mm, so that resolutions compare.

    Source:
        Pech-Pacheco et al., "Diatom autofocusing in brightfield microscopy", ICPR 2000.
    """
    left, top, right, bottom = fit.clip(_FACE_MM)
    face = np.asarray(fit.crop(gray, _FACE_MM, (int((right - left) * 8), int((bottom - top) * 8))), dtype=np.int16)
    laplacian = face[:-2, 1:-1] + face[2:, 1:-1] + face[1:-1, :-2] + face[1:-1, 2:] - 4 * face[1:-1, 1:-1]
    return float(laplacian.var())


def border_color(rgb: NDArray[np.uint8], fit: CardFit) -> str | None:
    """Return the border's color as all four sides show it, or None where they differ or leave doubt."""
    votes = [_side(rgb, fit, box) for box in _SIDES]
    named = [vote for vote in votes if vote is not None]
    if len(named) < 3:
        return None
    best = max(sorted(set(named)), key=named.count)
    needed = 4 if best == "borderless" else 3
    return best if named.count(best) == len(named) >= needed else None


def _side(rgb: NDArray[np.uint8], fit: CardFit, box: BoxMm) -> str | None:
    size = (12, 80) if box[3] - box[1] > box[2] - box[0] else (80, 12)
    strip = np.asarray(fit.crop(rgb, box, size)).reshape(-1, 3)
    low, high = percentiles((strip.sum(axis=1, dtype=np.uint16) // 3).astype(np.uint8), (10, 90))
    spread = high - low
    if spread > 2 * _EVEN_SPREAD:
        return "borderless"
    red, green, blue = (percentiles(strip[:, channel], (50,))[0] for channel in range(3))
    level, chroma = (red + green + blue) / 3, max(red, green, blue) - min(red, green, blue)
    if spread > _EVEN_SPREAD:
        return None
    if level < 60 and chroma < 30:
        return "black"
    if level > 205 and chroma < 40:
        return "white"
    if 110 < level < 200 and chroma < 22:
        return "silver"
    if red > green > blue and 90 < level < 200 and 45 < chroma < 130:
        return "gold"
    return None
