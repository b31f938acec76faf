"""The first straight edge from each side of a picture: the card's own edge on a background, or its frame's in a border.

Each is a line through many rows, so one scratch or a rounded corner does not move it. What an edge means is not decided
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from cardpicker.stage_c.imaging.levels import percentiles_of_few

Strip = NDArray[np.int16]
ROWS = 64
REACH = 0.2  #: Of the width: how far in an edge is looked for.
TOLERANCE = 40  #: Gray levels that differ from the strip at the side.
STRAIGHT = 0.006  #: Of the width: how far the middle half of the rows may lie off the line.


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A line along one side of the picture."""

    at_px: float  #: From the picture's side, at the middle of that side.
    slope: float  #: Pixels farther from the side per pixel along it, downward or to the right.
    band_px: float  #: Width of the even band behind the edge; 0 where there is none.


def side_edges(upright: NDArray[np.uint8]) -> tuple[Edge | None, Edge | None, Edge | None, Edge | None]:
    """Return the first edge from the left, right, top and bottom side; None where there is no straight one."""
    across = np.swapaxes(upright, 0, 1)
    return _edge(upright), _edge(upright[:, ::-1]), _edge(across), _edge(across[:, ::-1])


def _edge(pixels: NDArray[np.uint8]) -> Edge | None:
    """Return the first edge from the left."""
    height, width = (int(side) for side in pixels.shape)
    places = np.linspace(height * 0.2, height * 0.8, ROWS).astype(int)
    strip = pixels[places, : int(width * REACH)].astype(np.int16)
    firsts = first_change(strip, skip=max(1, strip.shape[1] // 40))
    found = firsts < strip.shape[1]
    if found.sum() < 0.7 * ROWS:
        return None
    y, x = places[found] - height / 2, firsts[found].astype(np.float64)
    half = len(y) // 2
    slope = median(((x[half : 2 * half] - x[:half]) / (y[half : 2 * half] - y[:half])).tolist())
    level = x - slope * y
    at = median(level.tolist())
    if percentiles_of_few(np.abs(level - at), (60,))[0] > STRAIGHT * width + 1:
        return None
    return Edge(at_px=at, slope=slope, band_px=_band(pixels, places, at + slope * (places - height / 2)))


def first_change(strip: Strip, *, skip: int) -> NDArray[np.int64]:
    """Return, by row, the first pixel unlike those at the side, or the strip's width."""
    beside = np.sort(strip[:, skip : 3 * skip + 1], axis=1)  # An odd number of columns, so the median is one of them.
    differs = np.abs(strip - beside[:, beside.shape[1] // 2, None]) > TOLERANCE
    differs[:, : 2 * skip] = False
    return np.asarray(np.where(differs.any(axis=1), differs.argmax(axis=1), strip.shape[1]), dtype=np.int64)


def _band(pixels: NDArray[np.uint8], places: NDArray[np.int64], edge: NDArray[np.float64]) -> float:
    """Return the width of the even band that begins at ``edge``."""
    reach = max(6, int(pixels.shape[1] * 0.13))
    columns = np.clip(edge[:, None].astype(int) + 1 + np.arange(reach), 0, pixels.shape[1] - 1)
    firsts = first_change(pixels[places[:, None], columns].astype(np.int16), skip=max(1, reach // 18))
    low, middle, high = percentiles_of_few(firsts, (25, 50, 75))
    return middle + 1 if middle < reach and high - low <= 0.3 * middle + 2 else 0.0
