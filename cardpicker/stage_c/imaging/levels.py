"""Fast exact arithmetic over gray levels: percentiles by counting, sliding extremes by doubling.

Equal to what numpy and scipy compute over general numbers, at a tenth of the cost, because levels are few and small; and
percentiles of a few general numbers, for which numpy's checks of its arguments cost more than the sorting.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

Levels = NDArray[np.uint8]
_Combine = Callable[[Levels, Levels], Levels]


def percentiles(levels: Levels, wanted: Sequence[float]) -> list[float]:
    """Return percentiles of ``levels``, interpolated linearly, as `numpy.percentile` gives them.

    Args:
        wanted: 0 to 100 each; ``levels`` must not be empty.
    """
    return counted_percentiles(np.bincount(levels.ravel(), minlength=256), wanted)


def counted_percentiles(counts: Sequence[int] | NDArray[np.int64], wanted: Sequence[float]) -> list[float]:
    """Return the percentiles of levels of which ``counts`` tells how often each occurs, as `Image.histogram` does."""
    upto = np.cumsum(counts).tolist()
    found = []
    for percent in wanted:
        place = percent / 100 * (upto[-1] - 1)
        low, high = bisect_right(upto, int(place)), bisect_right(upto, ceil(place))
        found.append(low + (high - low) * (place - int(place)))
    return found


def percentiles_of_few(values: NDArray[np.number], wanted: Sequence[float]) -> list[float]:
    """Return percentiles of a hundred numbers or so, to the last digit as `numpy.percentile` gives them."""
    ordered = np.sort(values, axis=None).tolist()
    found = []
    for percent in wanted:
        place = percent / 100 * (len(ordered) - 1)
        low, high, share = ordered[int(place)], ordered[ceil(place)], place - int(place)
        found.append(low + (high - low) * share if share < 0.5 else high - (high - low) * (1 - share))
    return found


def slide_min(levels: Levels, size: tuple[int, int]) -> Levels:
    """Return the least level within the odd window ``size`` (height, width) around each pixel; edges are mirrored."""
    return _slide(_slide(levels, size[0], 0, np.minimum), size[1], 1, np.minimum)


def slide_max(levels: Levels, size: tuple[int, int]) -> Levels:
    """Return the greatest level within the odd window ``size`` (height, width) around each pixel."""
    return _slide(_slide(levels, size[0], 0, np.maximum), size[1], 1, np.maximum)


def opened(levels: Levels, size: tuple[int, int]) -> Levels:
    """Return ``levels`` without light parts smaller than the odd window ``size``."""
    return slide_max(slide_min(levels, size), size)


def closed(levels: Levels, size: tuple[int, int]) -> Levels:
    """Return ``levels`` without dark parts smaller than the odd window ``size``."""
    return slide_min(slide_max(levels, size), size)


def _slide(levels: Levels, size: int, axis: int, combine: _Combine) -> Levels:
    if size <= 1:
        return levels
    work = levels if axis == 0 else levels.T
    half = size // 2
    if half > work.shape[0]:
        work = np.pad(work, ((half, half), (0, 0)), mode="symmetric")
    else:
        work = np.concatenate((work[:half][::-1], work, work[-half:][::-1]))
    width = 1
    while width < size:
        step = min(width, size - width)
        work = combine(work[:-step], work[step:])
        width += step
    return work if axis == 0 else np.ascontiguousarray(work.T)
