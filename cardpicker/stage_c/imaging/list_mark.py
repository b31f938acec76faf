"""The planeswalker mark of The List: five prongs that meet in a point, left of a two-row collector line.

Seeing it and being sure that it is absent are two measurements, and between them lies "cannot say": absent is only what
was looked for on an even ground, with room for the mark, beside print that stands out well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter
from scipy import ndimage

from cardpicker.stage_c.imaging.geometry import BoxMm, CardFit

PX_PER_MM = 16
REACH_MM = 3.6  #: Left of the print's left end, for a row that begins with the print.
DEPTH_MM = 5.0  #: Right of it: a row whose left end is the mark still shows its print.
ROOM_MM = (2.8, 0.35)  #: From the print, the space where a mark would stand.
MARK_WIDTH, MARK_HEIGHT = (0.45, 0.95), (0.75, 1.25)  #: Of the height of the two rows together.
MARK_GAP = (0.05, 0.5)
INK = 0.45  #: Of the contrast between print and ground.
CLEAR_SHAPE = 0.66  #: Correlation with the drawn mark: at or above it a shape is the mark.
PRONGS_AT, PRONGS_WIDTH = (0.32, 0.40), 0.85  #: The prongs stand apart, as no diamond or star does.
UPRIGHT_MARGIN = 0.08  #: By which it fits the mark better than the mark on its head; a diamond fits both.
STEM_AT, STEM_WIDTH = (0.78, 0.78), 0.55
MIN_CONTRAST = 40.0  #: Gray levels between print and ground.
MAX_STIR = 0.09  #: Of that contrast: the most that an empty ground may vary.
MAX_NOISE = 0.09
MIN_NATIVE_PX_PER_MM = 5.0

#: Outline in fractions of its box: five prongs over shoulders that run into a point.
_OUTLINE = (
    (0.00, 0.56), (0.06, 0.27), (0.13, 0.48), (0.22, 0.48), (0.29, 0.12), (0.36, 0.46), (0.44, 0.46), (0.51, 0.00),
    (0.58, 0.46), (0.66, 0.46), (0.73, 0.12), (0.79, 0.48), (0.88, 0.48), (0.96, 0.27), (1.00, 0.56), (0.78, 0.68),
    (0.64, 0.78), (0.56, 0.90), (0.50, 1.00), (0.44, 0.90), (0.36, 0.78), (0.22, 0.68),
)  # fmt: skip
_SHAPE_PX = (20, 28)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkSight:
    """What is seen left of a collector line."""

    mark: bool | None  #: None: no room, too faint, too coarse, or something else stands there.
    confidence: float
    print_left_mm: float | None = None  #: Where the print begins, right of the mark.


UNSEEN = MarkSight(mark=None, confidence=0.0)


def draw_mark(
    draw: ImageDraw.ImageDraw, box_px: tuple[float, float, float, float], fill: int | tuple[int, int, int]
) -> None:
    """Draw the mark into ``box_px`` (left, top, right, bottom)."""
    left, top, right, bottom = box_px
    points = [(left + x * (right - left), top + y * (bottom - top)) for x, y in _OUTLINE]
    draw.polygon(points, fill=fill)


def pairs(boxes: Sequence[BoxMm]) -> Iterable[tuple[int, int]]:
    """Yield the indexes (upper, lower) of rows that may be the two of a collector line at the left."""
    for upper, a in enumerate(boxes):
        for lower, b in enumerate(boxes):
            rise = b[3] - a[3]
            if 1.0 <= rise <= 2.8 and b[1] > a[3] - 0.3 and abs(a[0] - b[0]) <= 3.0 and max(a[0], b[0]) < 16.0:
                yield upper, lower


def without_mark(gray: NDArray[np.uint8], fit: CardFit, boxes: Sequence[BoxMm]) -> list[BoxMm]:
    """Return ``boxes`` of rows, where one began with the mark shortened to its print."""
    shortened = list(boxes)
    for pair in pairs(boxes):
        sight = find_mark(gray, fit, *(boxes[place] for place in pair))
        if sight.mark and sight.print_left_mm is not None:
            for place in pair:
                left, top, right, bottom = boxes[place]
                shortened[place] = (min(max(left, sight.print_left_mm), right - 1.0), top, right, bottom)
    return shortened


def find_mark(gray: NDArray[np.uint8], fit: CardFit, upper: BoxMm, lower: BoxMm) -> MarkSight:
    """Return whether the mark stands left of the line, light on dark, whose rows are ``upper`` and ``lower``."""
    high = lower[3] - upper[1]
    begin = max(upper[0], lower[0])
    wanted = (begin - REACH_MM, upper[1] - 0.35 * high, begin + DEPTH_MM, lower[3] + 0.35 * high)
    box = fit.clip(wanted)
    if box[2] - box[0] < 3.0 or box[1] > upper[1] or box[3] < lower[3] or fit.px_per_mm_x < MIN_NATIVE_PX_PER_MM:
        return UNSEEN
    size = (int((box[2] - box[0]) * PX_PER_MM), int((box[3] - box[1]) * PX_PER_MM))
    levels = np.asarray(fit.crop(gray, box, size), dtype=np.float32)
    rows = slice(int((upper[1] - box[1]) * PX_PER_MM), int((lower[3] - box[1]) * PX_PER_MM) + 1)
    ground = float(np.percentile(levels[rows], 40))
    contrast = float(np.percentile(levels[rows, -int(DEPTH_MM * PX_PER_MM * 0.6) :], 97)) - ground
    if contrast < MIN_CONTRAST:
        return UNSEEN
    scene = _Scene(relief=(levels - ground) / contrast, rows=rows)
    sight = scene.sight()
    if sight.print_left_mm is None:
        return sight
    return MarkSight(mark=sight.mark, confidence=sight.confidence, print_left_mm=box[0] + sight.print_left_mm)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scene:
    """The line's left end; 0 is its ground and 1 its print."""

    relief: NDArray[np.float32]
    rows: slice

    def sight(self) -> MarkSight:
        """Judge the shapes of the line's left end: letters have the height of one row, the mark that of both."""
        labels, _ = ndimage.label(self.relief > INK, structure=np.ones((3, 3)))
        places = [place for place in ndimage.find_objects(labels) if place is not None]
        tall = [(index, place) for index, place in enumerate(places, start=1) if self._has_size_of_mark(place)]
        if not tall:
            start = self._print_start(places, 0)
            return UNSEEN if start is None else self._absence(start)
        index, place = tall[0]
        start = self._print_start(places, place[1].stop)
        if len(tall) > 1 or start is None or not self._stands_beside(place, start):
            return UNSEEN
        shape = likeness(self.relief[place] * (labels[place] == index))
        if shape < CLEAR_SHAPE:
            return UNSEEN
        return MarkSight(mark=True, confidence=round(min(0.99, shape), 3), print_left_mm=start / PX_PER_MM)

    @property
    def _high(self) -> int:
        return int(self.rows.stop - self.rows.start)

    def _print_start(self, places: Sequence[tuple[slice, slice]], after: int) -> int | None:
        """Return the column from which both rows go on, no earlier than ``after``."""
        middle, high = (self.rows.start + self.rows.stop) / 2, self._high
        begins: list[int] = []
        for above in (True, False):
            lefts = [
                place[1].start
                for place in places
                if place[1].start >= after
                and 0.25 * high <= place[0].stop - place[0].start <= 0.6 * high
                and (place[0].stop <= middle + 0.1 * high if above else place[0].start >= middle - 0.1 * high)
            ]
            if not lefts:
                return None
            begins.append(min(lefts))
        return min(begins) if abs(begins[0] - begins[1]) <= 0.35 * high else None

    def _has_size_of_mark(self, place: tuple[slice, slice]) -> bool:
        tall, wide = (place[axis].stop - place[axis].start for axis in (0, 1))
        aside = abs((place[0].start + place[0].stop) - (self.rows.start + self.rows.stop)) / 2
        return bool(
            MARK_HEIGHT[0] * self._high <= tall <= MARK_HEIGHT[1] * self._high
            and MARK_WIDTH[0] * self._high <= wide <= MARK_WIDTH[1] * self._high
            and aside <= 0.2 * self._high
        )

    def _stands_beside(self, place: tuple[slice, slice], start: int) -> bool:
        return bool(MARK_GAP[0] * self._high <= start - place[1].stop <= MARK_GAP[1] * self._high)

    def _absence(self, start: int) -> MarkSight:
        """Return a sure "no" only for an even ground with room for a mark."""
        left, right = (start - int(room * PX_PER_MM) for room in ROOM_MM)
        if left < 0:
            return UNSEEN
        ground = self.relief[self.rows.start : self.rows.stop, left:right]
        smooth = ndimage.uniform_filter(ground, size=5)
        stir, noise = float(np.ptp(smooth)), float((ground - smooth).std())
        if stir > MAX_STIR or noise > MAX_NOISE:
            return UNSEEN
        return MarkSight(mark=False, confidence=round(1 - stir, 3), print_left_mm=start / PX_PER_MM)


def likeness(shape: NDArray[np.float32]) -> float:
    """Return the correlation of ``shape``, fitted into a box, with the drawn mark; 0 for another silhouette."""
    levels = np.clip(shape, 0, 1) * 255
    picture = Image.fromarray(levels.astype(np.uint8)).resize(_SHAPE_PX, Image.Resampling.BILINEAR)
    found = np.asarray(picture, dtype=np.float64)
    if _spread(found, PRONGS_AT) < PRONGS_WIDTH or _spread(found, STEM_AT) > STEM_WIDTH:
        return 0.0
    drawn = Image.new("L", (_SHAPE_PX[0] * 4, _SHAPE_PX[1] * 4), 0)
    draw_mark(ImageDraw.Draw(drawn), (0, 0, *drawn.size), 255)
    model = drawn.filter(ImageFilter.GaussianBlur(2)).resize(_SHAPE_PX, Image.Resampling.BOX)
    wanted = np.asarray(model, dtype=np.float64)
    upright, turned = (float(np.corrcoef(seen.ravel(), wanted.ravel())[0, 1]) for seen in (found, found[::-1]))
    return upright if upright - turned >= UPRIGHT_MARGIN else 0.0


def _spread(levels: NDArray[np.float64], heights: tuple[float, float]) -> float:
    """Return the greatest width from the first to the last inked pixel between two heights, as a share of the box."""
    first, last = (int(at * levels.shape[0]) for at in heights)
    inked = levels[first : last + 1] > 255 * INK
    widths = [int(np.ptp(np.flatnonzero(row))) + 1 for row in inked if row.any()]
    return max(widths, default=0) / int(levels.shape[1])
