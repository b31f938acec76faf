"""Edges: the first change from a side is what its plain definition says, to the pixel."""

from __future__ import annotations

import numpy as np
import pytest

from cardpicker.stage_c.imaging.edges import TOLERANCE, first_change


@pytest.mark.parametrize("width", [19, 40, 150, 280])
@pytest.mark.parametrize("spread", [10, 30, 255])
def test_first_change_is_measured_from_the_median_at_the_side(width: int, spread: int) -> None:
    """Rows without any change give the width of the strip."""
    strip = np.random.default_rng(width).integers(0, spread + 1, (64, width)).astype(np.int16)
    strip[::2, width // 2 :] += 100
    skip = max(1, width // 40)

    wanted = []
    for row in strip:
        side = np.median(row[skip : 3 * skip + 1])
        wanted.append(next((x for x in range(2 * skip, width) if abs(row[x] - side) > TOLERANCE), width))
    assert first_change(strip, skip=skip).tolist() == wanted
