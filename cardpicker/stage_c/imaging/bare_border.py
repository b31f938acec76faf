"""The corner of the border where the mark of The List stands on frames whose line leaves no other room for it.

A bare border is seen whole and plain, in a picture whose range of levels would show the mark. All else is "cannot say".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from cardpicker.stage_c.imaging.geometry import BoxMm, CardFit
from cardpicker.stage_c.imaging.levels import percentiles
from cardpicker.stage_c.imaging.list_mark import CLEAR_SHAPE, INK, MIN_NATIVE_PX_PER_MM, UNSEEN, MarkSight, likeness

PX_PER_MM = 10
CORNER_MM: BoxMm = (0.5, 78.0, 16.0, 87.5)
#: Border inside the corner, clear of the frame and of the card's rounding: the side, the bend and the bottom.
STRIPS_MM: tuple[BoxMm, ...] = ((0.6, 78.0, 2.3, 85.2), (1.4, 85.0, 2.6, 86.4), (2.4, 85.4, 16.0, 87.4))
FACE_MM: BoxMm = (3.0, 10.0, 60.0, 78.0)
SURE_FIT = 0.8
MIN_RANGE = 90.0  #: Gray levels between the face's darkest and lightest parts.
MAX_STIR, MAX_NOISE = 0.06, 0.04  #: Of that range: what a bare border may vary by.
MARK_WIDTH_MM, MARK_HEIGHT_MM = (1.3, 2.5), (1.9, 3.2)


def find_mark_in_corner(gray: NDArray[np.uint8], fit: CardFit) -> MarkSight:
    """Return whether the mark stands in the bottom left corner of an even border, or surely does not."""
    box = fit.clip(CORNER_MM)
    if fit.confidence < SURE_FIT or box != CORNER_MM or fit.px_per_mm_x < MIN_NATIVE_PX_PER_MM:
        return UNSEEN
    left, top, right, bottom = fit.clip(FACE_MM)
    face = np.asarray(fit.crop(gray, FACE_MM, (int(right - left) * 2, int(bottom - top) * 2)), dtype=np.uint8)
    low, high = percentiles(face, (2, 98))
    if high - low < MIN_RANGE:
        return UNSEEN
    size = (int((box[2] - box[0]) * PX_PER_MM), int((box[3] - box[1]) * PX_PER_MM))
    levels = np.asarray(fit.crop(gray, box, size), dtype=np.float32)
    border = _border(levels.shape)
    relief = np.where(border, np.abs(levels - np.median(levels[border])) / (high - low), 0.0).astype(np.float32)
    smooth = ndimage.uniform_filter(relief, size=3)
    stir, noise = float(smooth[border].max()), float((relief - smooth)[border].std())
    if stir <= MAX_STIR and noise <= MAX_NOISE:
        return MarkSight(mark=False, confidence=round(1 - stir, 3))
    return _marked(relief)


def _border(shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which pixels of the corner are border."""
    border = np.zeros(shape, dtype=np.bool_)
    for left, top, right, bottom in STRIPS_MM:
        rows, columns = (
            slice(int((first - origin) * PX_PER_MM), int((last - origin) * PX_PER_MM))
            for first, last, origin in ((top, bottom, CORNER_MM[1]), (left, right, CORNER_MM[0]))
        )
        border[rows, columns] = True
    return border


def _marked(relief: NDArray[np.float32]) -> MarkSight:
    """Return the mark where one shape of its size and outline stands, and nothing else."""
    labels, count = ndimage.label(relief > INK, structure=np.ones((3, 3)))
    if count != 1:
        return UNSEEN
    (place,) = ndimage.find_objects(labels)
    tall, wide = ((place[axis].stop - place[axis].start) / PX_PER_MM for axis in (0, 1))
    if not (MARK_HEIGHT_MM[0] <= tall <= MARK_HEIGHT_MM[1] and MARK_WIDTH_MM[0] <= wide <= MARK_WIDTH_MM[1]):
        return UNSEEN
    shape = likeness(relief[place] * (labels[place] > 0))
    return MarkSight(mark=True, confidence=round(min(0.99, shape), 3)) if shape >= CLEAR_SHAPE else UNSEEN
