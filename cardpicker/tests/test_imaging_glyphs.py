"""Glyphs are found as their plain definition finds them, on noise and on strokes that touch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from cardpicker.stage_c.imaging.glyphs import FIND_PX_PER_MM, GLYPH_HEIGHT_MM, GLYPH_WIDTH_MM, Glyph, find_glyphs
from cardpicker.stage_c.imaging.levels import Levels

SHAPES = [(40, 61), (111, 300), (9, 12), (60, 30)]


def plainly_found(strokes: Levels) -> list[Glyph]:
    """Return the glyphs of each level from the whole picture, by scipy's own measurements."""
    around = ndimage.maximum_filter(strokes, size=(13, 25)).astype(np.float32)
    low, high = (mm * FIND_PX_PER_MM for mm in GLYPH_HEIGHT_MM)
    rest, found = strokes > 14, []
    for level in (0.35, 0.55):
        labels, _ = ndimage.label(rest & (strokes > around * np.float32(level)), structure=np.ones((3, 3)))
        rest = np.zeros_like(rest)
        for index, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
            own = labels == index
            height, width = rows.stop - rows.start, columns.stop - columns.start
            if high < height <= 2 * high:
                rest |= own
            elif low <= height <= high and width <= min(GLYPH_WIDTH_MM * FIND_PX_PER_MM, 14 * height):
                found.append(Glyph(columns.start, rows.start, columns.stop, rows.stop, float(strokes[own].mean())))
    return found


def touching_rows(shape: tuple[int, int], seed: int) -> Levels:
    """Return blobs, some of which only fainter pixels join."""
    noise = np.random.default_rng(seed).normal(0, 1, shape)
    blobs = ndimage.gaussian_filter(noise, (4.0, 1.5))
    return np.asarray(np.clip(blobs / blobs.std() * 60, 0, 255), dtype=np.uint8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(6))
def test_glyphs_are_those_of_the_plain_definition(shape: tuple[int, int], seed: int) -> None:
    """In the same order, which settles ties where glyphs are joined to rows."""
    speckled = np.random.default_rng(seed).integers(0, 40, shape, dtype=np.uint8)

    for strokes in (touching_rows(shape, seed), speckled, np.zeros(shape, dtype=np.uint8)):
        assert find_glyphs(strokes) == plainly_found(strokes)


def test_rows_that_touch_are_parted_at_the_higher_level() -> None:
    """Two strokes one over the other that a faint bridge joins are two glyphs."""
    strokes = np.zeros((60, 200), dtype=np.uint8)
    strokes[8:26, 100:104] = strokes[30:48, 100:104] = 200
    strokes[26:30, 100:104] = 90

    assert [(g.left, g.top, g.right, g.bottom) for g in find_glyphs(strokes)] == [(100, 8, 104, 26), (100, 30, 104, 48)]
