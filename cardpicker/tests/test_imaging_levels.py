"""Counting and doubling give what numpy and scipy give, to the last level."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from cardpicker.stage_c.imaging.levels import (
    closed,
    counted_percentiles,
    opened,
    percentiles,
    percentiles_of_few,
    slide_max,
    slide_min,
)

SHAPES = [(40, 61), (20, 9), (3, 50), (1, 5)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [(7, 7), (1, 55), (33, 1), (13, 25), (1, 1)])
def test_sliding_extremes_equal_scipys(shape: tuple[int, int], size: tuple[int, int]) -> None:
    """Also where the window is larger than the picture."""
    levels = np.random.default_rng(5).integers(0, 256, shape, dtype=np.uint8)

    assert np.array_equal(slide_min(levels, size), ndimage.minimum_filter(levels, size=size))
    assert np.array_equal(slide_max(levels, size), ndimage.maximum_filter(levels, size=size))
    assert np.array_equal(opened(levels, size), ndimage.grey_opening(levels, size=size))
    assert np.array_equal(closed(levels, size), ndimage.grey_closing(levels, size=size))


@pytest.mark.parametrize("shape", SHAPES)
def test_percentiles_equal_numpys(shape: tuple[int, int]) -> None:
    """Interpolated between levels in the same way."""
    levels = np.random.default_rng(6).integers(0, 256, shape, dtype=np.uint8)
    wanted = (0, 4, 45, 50, 96, 99.5, 100)

    assert percentiles(levels, wanted) == pytest.approx(list(np.percentile(levels, wanted)))
    assert counted_percentiles(Image.fromarray(levels).histogram(), wanted) == percentiles(levels, wanted)


@pytest.mark.parametrize("size", [1, 2, 31, 64])
def test_percentiles_of_few_numbers_are_numpys_to_the_last_digit(size: int) -> None:
    """Fractions as well as whole numbers, in any order."""
    random = np.random.default_rng(size)
    wanted = (0, 10, 25, 50, 60, 75, 97, 100)

    for values in (random.normal(0, 100, size), random.integers(0, 300, size)):
        assert percentiles_of_few(values, wanted) == np.percentile(values, wanted).tolist()
