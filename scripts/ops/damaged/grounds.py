"""What lies around a card: its own border's color, a mirrored bleed, a black ground, a table. Pure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Color = tuple[int, int, int]

BLACK: Color = (0, 0, 0)
#: Share of the shorter side that is looked at for the border's color.
_RING = 0.008
_WOOD = np.array((126.0, 96.0, 68.0))
_GRAIN, _CLOUDS, _GRIT = 14.0, 18.0, 4.0


def border_color(image: Image.Image) -> Color:
    """Return the median color of the picture's outermost pixels."""
    pixels = np.asarray(image)
    ring = max(1, round(_RING * min(image.size)))
    edges = (pixels[:ring], pixels[-ring:], pixels[:, :ring], pixels[:, -ring:])
    red, green, blue = np.median(np.concatenate([edge.reshape(-1, 3) for edge in edges]), axis=0)
    return int(red), int(green), int(blue)


def table(size: tuple[int, int], draw: np.random.Generator) -> Image.Image:
    """Return a brown table top: grain along it, lighter and darker places, and grit."""
    width, height = size
    grain = _smooth(draw.normal(0, _GRAIN, (height // 3 + 2, 4)), size)
    clouds = _smooth(draw.normal(0, _CLOUDS, (5, 5)), size)
    shade = grain + clouds + draw.normal(0, _GRIT, (height, width))
    return Image.fromarray(np.clip(_WOOD + shade[..., None], 0, 255).astype(np.uint8))


def _smooth(coarse: NDArray[np.float64], size: tuple[int, int]) -> NDArray[np.float32]:
    picture = Image.fromarray(coarse.astype(np.float32))
    return np.asarray(picture.resize(size, Image.Resampling.BICUBIC))
