"""Letters of small print as shapes: thin strokes of one polarity, the connected ones of a letter's size, and their chains.

Nothing here reads a letter or knows where the card is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from cardpicker.stage_c.imaging.levels import Levels, closed, opened, slide_max

FIND_PX_PER_MM = 12
STROKE_LEVELS = (0.35, 0.55)  #: Of the strongest stroke nearby.
STROKE_MM = 0.6  #: Anything thicker is no stroke of small print.
GLYPH_HEIGHT_MM = (0.55, 2.3)
GLYPH_WIDTH_MM = 9.0  #: Blurred letters run together; a frame line is longer still.
ROW_GAP_MM = 2.6  #: Between a number and its rarity; the left and right blocks are farther apart.
LINE_MM = (4.5, 2.8)  #: Straight runs at least this wide or this high are frame lines, not letters.
ALIGNED_MM = 0.13
_TOUCHING = np.ones((3, 3))  #: At a side or a corner.


@dataclass(frozen=True, slots=True)
class Glyph:
    """A connected stroke of a letter's size, in pixels of the band."""

    left: int
    top: int
    right: int
    bottom: int
    energy: float


def stroke_image(gray: Levels, light: bool, px_per_mm: float) -> Levels:
    """Return how much each pixel stands out as a thin light (or dark) stroke, in gray levels."""
    size = max(3, int(STROKE_MM * px_per_mm) | 1)
    return gray - opened(gray, (size, size)) if light else closed(gray, (size, size)) - gray


def find_glyphs(strokes: Levels) -> list[Glyph]:
    """Return the connected strokes of a letter's size; two rows that touch are parted at a higher level.

    A low level keeps thin strokes whole, a high one parts rows whose letters touch.
    """
    around = slide_max(strokes, (FIND_PX_PER_MM | 1, 2 * FIND_PX_PER_MM | 1))
    rest = strokes > 14
    glyphs: list[Glyph] = []
    low, high = (mm * FIND_PX_PER_MM for mm in GLYPH_HEIGHT_MM)
    left = top = 0
    for level in STROKE_LEVELS:
        shapes = _shapes(rest & (strokes > around * np.float32(level)), strokes)
        width, height = (shapes.boxes[:, 2:] - shapes.boxes[:, :2]).T
        narrow = (width <= GLYPH_WIDTH_MM * FIND_PX_PER_MM) & (width <= 14 * height)
        fitting = np.flatnonzero(narrow & (low <= height) & (height <= high))
        boxes = shapes.boxes[fitting] + (left, top, left, top)
        glyphs += [
            Glyph(x0, y0, x1, y1, energy)
            for (x0, y0, x1, y1), energy in zip(boxes.tolist(), shapes.energies[fitting].tolist(), strict=True)
        ]
        tall = (high < height) & (height <= 2 * high)
        if not tall.any():
            break
        # Nothing is parted outside of what was too tall, often a corner of the band.
        (x, y), (right, bottom) = shapes.boxes[tall, :2].min(axis=0), shapes.boxes[tall, 2:].max(axis=0)
        window = (slice(y, bottom), slice(x, right))
        rest = np.append(False, tall)[shapes.labels[window]]
        strokes, around, left, top = strokes[window], around[window], left + x, top + y
    return glyphs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shapes:
    """Connected shapes; ``labels`` is the picture of their numbers from 1."""

    labels: NDArray[np.int32]
    boxes: NDArray[np.int64]  #: Left, top, right and bottom of each shape.
    energies: NDArray[np.float64]  #: Mean level of each shape.


def _shapes(inked: NDArray[np.bool_], strokes: Levels) -> _Shapes:
    """Measure what touches at a side or a corner by its own pixels; `ndimage.find_objects` would go through all."""
    labels, count = ndimage.label(inked, structure=_TOUCHING)
    place = np.flatnonzero(inked)
    which = labels.take(place) - 1
    x = place % inked.shape[1]
    left, right = np.full(count, inked.shape[1]), np.zeros(count, dtype=np.int64)
    np.minimum.at(left, which, x)
    np.maximum.at(right, which, x)
    first, last = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    first[which[::-1]], last[which] = place[::-1], place  # Of many assigned to one index the last one stays.
    return _Shapes(
        labels=labels,
        boxes=np.stack((left, first // inked.shape[1], right + 1, last // inked.shape[1] + 1), axis=1),
        energies=np.bincount(which, strokes.take(place), count) / np.bincount(which, minlength=count),
    )


def without_lines(strokes: Levels) -> Levels:
    """Take away the straight lines of a frame, whose brightness would hide the print beside them."""
    wide, high = (int(mm * FIND_PX_PER_MM) | 1 for mm in LINE_MM)
    return strokes - np.maximum(opened(strokes, (1, wide)), opened(strokes, (high, 1)))


def chain_glyphs(glyphs: Sequence[Glyph]) -> list[list[Glyph]]:
    """Join glyphs, from left to right, to the row whose last glyph stands beside them."""
    chains: list[list[Glyph]] = []
    reachable: list[tuple[int, int, int, list[Glyph]]] = []  # Top, bottom and right of a chain's end, and the chain.
    gap = ROW_GAP_MM * FIND_PX_PER_MM
    for glyph in sorted(glyphs, key=lambda g: (g.left, g.top)):
        reachable = [end for end in reachable if glyph.left - end[2] < gap]  # What is out of reach stays so.
        best, nearest = -1, gap
        for place, (top, bottom, right, _) in enumerate(reachable):
            if top >= glyph.bottom or bottom <= glyph.top or glyph.left - right >= nearest:
                continue  # Most stand in another row.
            shared = min(glyph.bottom, bottom) - max(glyph.top, top)
            if shared >= 0.6 * min(glyph.bottom - glyph.top, bottom - top):
                best, nearest = place, glyph.left - right
        if best < 0:
            chain = [glyph]
            chains.append(chain)
            reachable.append((glyph.top, glyph.bottom, glyph.right, chain))
            continue
        chain = reachable[best][3]
        before = chain[-1]  # A pen or a comma stands off the line; the letter before it does not.
        chain.append(glyph)
        reachable[best] = (
            min(before.top, glyph.top),
            max(before.bottom, glyph.bottom),
            max(before.right, glyph.right),
            chain,
        )
    return chains


def aligned(chain: Sequence[Glyph]) -> float:
    """Return the share of neighbors that stand on one line, as letters do and the specks of a texture seldom."""
    steps = [abs(glyph.bottom - other.bottom) for glyph, other in pairwise(chain)]
    return sum(step <= ALIGNED_MM * FIND_PX_PER_MM for step in steps) / len(steps)
