"""Letters of small print as shapes: thin strokes of one polarity, the connected ones of a letter's size, and their chains.

Nothing here reads a letter or knows where the card is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
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
    for level in STROKE_LEVELS:
        inked = rest & (strokes > around * np.float32(level))
        labels, count = ndimage.label(inked, structure=np.ones((3, 3)))
        which = labels[inked]
        areas = np.bincount(which, minlength=count + 1)
        energies = np.bincount(which, strokes[inked], count + 1) / np.maximum(areas, 1)
        labels[inked] = np.where(areas[which] >= low, which, 0)  # Most are specks, too small for any glyph.
        rest = np.zeros_like(rest)
        for index, place in enumerate(ndimage.find_objects(labels), start=1):
            if place is None:
                continue
            height, width = place[0].stop - place[0].start, place[1].stop - place[1].start
            if high < height <= 2 * high:
                rest[place] |= labels[place] == index
            elif low <= height <= high and width <= GLYPH_WIDTH_MM * FIND_PX_PER_MM and width <= 14 * height:
                glyphs.append(
                    Glyph(place[1].start, place[0].start, place[1].stop, place[0].stop, float(energies[index]))
                )
    return glyphs


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
            shared = min(glyph.bottom, bottom) - max(glyph.top, top)
            if shared >= 0.6 * max(1, min(glyph.bottom - glyph.top, bottom - top)) and glyph.left - right < nearest:
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
