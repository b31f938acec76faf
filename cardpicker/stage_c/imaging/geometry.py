"""Where the card lies in its picture: one map from card millimeters to pixels, with how far to trust it.

The origin of the millimeters is the top left corner of the trimmed card (63 × 88 mm); bleed lies at negative values.
Rectangles, quarter turns and small tilts are found here, no perspective; the text in the bottom band settles which way up
the card is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cardpicker.stage_c.imaging.edges import Edge, Strip, first_change, side_edges
from cardpicker.stage_c.imaging.levels import percentiles_of_few

CARD_WIDTH_MM = 63.0
CARD_HEIGHT_MM = 88.0
BLEED_MM = 3.175
BORDER_MM = 2.8  #: Typical printed border from trim to frame at both sides, 2.5 to 3.1 over the frames of all years.
MAX_INSET_MM = 12.0
MAX_RATIO = 0.95  #: Of width to height; a picture nearer to a square says nothing of its bleed.
MIN_TILT_DEG, MAX_TILT_DEG = 0.3, 4.0
LEVEL_FROM_DEG = 1.6  #: Small print is read as well leaning, and resampling costs it more, up to 1.5 degrees.
MAX_ODD_MM = (
    2.0  #: Between the bleed that a picture's ratio implies and a usual one: beyond it the picture shows a ground.
)
MAX_SLOPE_DIFFERENCE = 0.01  #: Between the two sides of one card.
ASIDE_CONFIDENCE = 0.6

Matrix = tuple[float, float, float, float, float, float]
BoxMm = tuple[float, float, float, float]  #: Left, top, right, bottom.
Edges = tuple[Edge | None, Edge | None, Edge | None, Edge | None]  #: Left, right, top, bottom.


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFit:
    """The card's place in a normalized image."""

    width_px: int
    height_px: int
    rotation_deg: int  #: Clockwise turn that makes the picture upright: 0, 90, 180 or 270.
    bleed_left_mm: float  #: From the upright picture's edge to the trim.
    bleed_top_mm: float
    px_per_mm_x: float
    px_per_mm_y: float
    confidence: float
    tilt_deg: float = 0.0  #: Clockwise lean of the card in the upright picture, about its middle.

    @property
    def bleed_mm(self) -> float:
        """Mean distance between the picture's edge and the trim; negative when the trim is cut into."""
        return (self.bleed_left_mm + self.bleed_top_mm) / 2

    @property
    def has_bleed(self) -> bool:
        """Whether the picture shows more than the trimmed card by at least a third of the usual bleed."""
        return self.bleed_mm > BLEED_MM / 3

    @property
    def has_card_ratio(self) -> bool:
        """Whether the picture's sides are those of a card, with or without the usual bleed."""
        width, height = self._upright_px
        return _from_usual(bleed_of_ratio(min(width / height, MAX_RATIO))) < MAX_ODD_MM

    def point(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """Return the pixel of a card position."""
        x = (x_mm + self.bleed_left_mm) * self.px_per_mm_x
        y = (y_mm + self.bleed_top_mm) * self.px_per_mm_y
        if self.tilt_deg:
            sine, cosine = math.sin(math.radians(self.tilt_deg)), math.cos(math.radians(self.tilt_deg))
            middle_x = (CARD_WIDTH_MM / 2 + self.bleed_left_mm) * self.px_per_mm_x
            middle_y = (CARD_HEIGHT_MM / 2 + self.bleed_top_mm) * self.px_per_mm_y
            dx, dy = x - middle_x, y - middle_y
            x, y = middle_x + cosine * dx - sine * dy, middle_y + sine * dx + cosine * dy
        if self.rotation_deg == 90:
            return y, self.height_px - x
        if self.rotation_deg == 180:
            return self.width_px - x, self.height_px - y
        if self.rotation_deg == 270:
            return self.width_px - y, x
        return x, y

    @property
    def matrix(self) -> Matrix:
        """The affine map as (a, b, c, d, e, f): x_px = a·x + b·y + c and y_px = d·x + e·y + f."""
        c, f = self.point(0.0, 0.0)
        x1, y1 = self.point(1.0, 0.0)
        x2, y2 = self.point(0.0, 1.0)
        return (x1 - c, x2 - c, c, y1 - f, y2 - f, f)

    def crop(self, pixels: NDArray[np.uint8], box_mm: BoxMm, size_px: tuple[int, int]) -> Image.Image:
        """Return the upright content of ``box_mm``, clipped to the picture, resampled to ``size_px`` (width, height)."""
        if abs(self.tilt_deg) >= LEVEL_FROM_DEG:
            return self._leveled(pixels, box_mm, size_px)
        if self.tilt_deg:
            return replace(self, tilt_deg=0.0).crop(pixels, box_mm, size_px)
        (xa, ya), (xb, yb) = self.point(*box_mm[:2]), self.point(*box_mm[2:])
        left, right = sorted((min(max(xa, 0.0), self.width_px), min(max(xb, 0.0), self.width_px)))
        top, bottom = sorted((min(max(ya, 0.0), self.height_px), min(max(yb, 0.0), self.height_px)))
        box = (min(left, self.width_px - 1), min(top, self.height_px - 1), max(right, left + 1), max(bottom, top + 1))
        whole = (int(box[0]), int(box[1]), int(np.ceil(box[2])), int(np.ceil(box[3])))
        part = Image.fromarray(np.ascontiguousarray(pixels[whole[1] : whole[3], whole[0] : whole[2]]))
        inner = (
            box[0] - whole[0],
            box[1] - whole[1],
            min(box[2] - whole[0], part.width),
            min(box[3] - whole[1], part.height),
        )
        turned = self.rotation_deg in (90, 270)
        size = (size_px[1], size_px[0]) if turned else size_px
        resized = part.resize(size, Image.Resampling.BICUBIC, box=inner)
        return resized.rotate(-self.rotation_deg, expand=True) if self.rotation_deg else resized

    def _leveled(self, pixels: NDArray[np.uint8], box_mm: BoxMm, size_px: tuple[int, int]) -> Image.Image:
        """Return what ``crop`` does of a card that leans."""
        left, top, right, bottom = self.clip(box_mm)
        corners = [self.point(x, y) for x in (left, right) for y in (top, bottom)]
        near = [max(0, int(min(corner[axis] for corner in corners)) - 2) for axis in (0, 1)]
        far = [int(max(corner[axis] for corner in corners)) + 3 for axis in (0, 1)]
        part = Image.fromarray(np.ascontiguousarray(pixels[near[1] : max(far[1], near[1] + 1), near[0] : far[0]]))
        (x0, y0), (x1, y1), (x2, y2) = corners[0], corners[2], corners[1]
        shrink = max(1, int(math.hypot(x1 - x0, y1 - y0) / size_px[0]))
        part = part.reduce(shrink) if shrink > 1 else part
        across = ((x1 - x0) / size_px[0], (y1 - y0) / size_px[0])
        down = ((x2 - x0) / size_px[1], (y2 - y0) / size_px[1])
        rows = (across[0], down[0], x0 - near[0], across[1], down[1], y0 - near[1])
        data = tuple(value / shrink for value in rows)
        return part.transform(size_px, Image.Transform.AFFINE, data, Image.Resampling.BICUBIC)

    def clip(self, box_mm: BoxMm) -> BoxMm:
        """Return the part of ``box_mm`` that the picture shows."""
        width, height = self._upright_px
        return (
            max(box_mm[0], -self.bleed_left_mm),
            max(box_mm[1], -self.bleed_top_mm),
            min(box_mm[2], width / self.px_per_mm_x - self.bleed_left_mm),
            min(box_mm[3], height / self.px_per_mm_y - self.bleed_top_mm),
        )

    def turned(self) -> CardFit:
        """Return the same fit with the card the other way up."""
        width, height = self._upright_px
        return replace(
            self,
            rotation_deg=(self.rotation_deg + 180) % 360,
            bleed_left_mm=width / self.px_per_mm_x - CARD_WIDTH_MM - self.bleed_left_mm,
            bleed_top_mm=height / self.px_per_mm_y - CARD_HEIGHT_MM - self.bleed_top_mm,
        )

    @property
    def _upright_px(self) -> tuple[int, int]:
        sizes = (self.width_px, self.height_px)
        return sizes if self.rotation_deg in (0, 180) else (sizes[1], sizes[0])


def _from_usual(bleed_mm: float) -> float:
    """Return how far a bleed is from the usual one, or from none, whichever is nearer."""
    return min(abs(bleed_mm), abs(bleed_mm - BLEED_MM))


def bleed_of_ratio(ratio: float) -> float:
    """Return the bleed in mm that a picture of ``ratio`` (width / height) implies; negative when it is cut."""
    return (CARD_HEIGHT_MM * ratio - CARD_WIDTH_MM) / (2 * (1 - ratio))


def fit_card(gray: NDArray[np.uint8]) -> CardFit:
    """Return where the card lies in ``gray``, from its ratio and the width of its border.

    A picture wider than high is taken to lie on its left side; `CardFit.turned` gives the other guess.

    Args:
        gray: shape (height, width), gray levels 0 to 255.
    """
    height_px, width_px = gray.shape
    rotation = 90 if width_px > height_px else 0
    upright = np.rot90(gray, -1) if rotation else gray
    height, width = (int(side) for side in upright.shape)
    edges = side_edges(upright)
    place = _on_background(edges, width, height) or _by_border(upright, edges)
    return CardFit(
        width_px=width_px,
        height_px=height_px,
        rotation_deg=rotation,
        bleed_left_mm=place.left_mm,
        bleed_top_mm=place.top_mm,
        px_per_mm_x=place.px_per_mm_x,
        px_per_mm_y=place.px_per_mm_y,
        confidence=place.confidence,
        tilt_deg=_tilt(edges[0], edges[1]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where the trim lies in the upright picture."""

    left_mm: float
    top_mm: float
    px_per_mm_x: float
    px_per_mm_y: float
    confidence: float


def _tilt(left: Edge | None, right: Edge | None) -> float:
    """Return the lean that both sides show, in degrees clockwise; 0 where they differ or hardly lean."""
    if left is None or right is None or abs(left.slope + right.slope) > MAX_SLOPE_DIFFERENCE:
        return 0.0
    tilt = math.degrees(math.atan((right.slope - left.slope) / 2))
    return round(tilt, 2) if MIN_TILT_DEG <= abs(tilt) <= MAX_TILT_DEG else 0.0


def _on_background(edges: Edges, width: int, height: int) -> _Place | None:
    """Return the place of a card whose own four edges show: a rectangle whose ratio implies the border behind them."""
    left, right, top, bottom = edges
    if left is None or right is None or top is None or bottom is None:
        return None
    wide, high = width - left.at_px - right.at_px, height - top.at_px - bottom.at_px
    bleed = bleed_of_ratio(min(wide / high, MAX_RATIO))
    bleed = 0.0 if abs(bleed) < 0.8 else bleed
    x, y = wide / (CARD_WIDTH_MM + 2 * bleed), high / (CARD_HEIGHT_MM + 2 * bleed)
    borders = [edge.band_px / x - bleed for edge in (left, right)]
    if not 0 <= bleed <= 2 * BLEED_MM or not all(abs(border - BORDER_MM) < 0.8 for border in borders):
        return None
    return _Place(
        left_mm=left.at_px / x + bleed, top_mm=top.at_px / y + bleed, px_per_mm_x=x, px_per_mm_y=y, confidence=0.9
    )


def _by_border(upright: NDArray[np.uint8], edges: Edges) -> _Place:
    """Return the place from the picture's ratio and the width of the border at both sides."""
    height, width = (int(side) for side in upright.shape)
    bleed, top, confidence = _bleed(upright)
    if confidence <= ASIDE_CONFIDENCE and (aside := _aside(edges, width, height)) is not None:
        return aside
    x, y = width / (CARD_WIDTH_MM + 2 * bleed), height / (CARD_HEIGHT_MM + 2 * top)
    return _Place(left_mm=bleed, top_mm=top, px_per_mm_x=x, px_per_mm_y=y, confidence=confidence)


def _aside(edges: Edges, width: int, height: int) -> _Place | None:
    """Return the place of a card off the middle of a ground like its border, from the edges of its frame."""
    left, right, top, _ = edges
    if left is None or right is None or top is None:
        return None
    scale = (width - left.at_px - right.at_px) / (CARD_WIDTH_MM - 2 * BORDER_MM)
    margins = [left.at_px / scale - BORDER_MM, right.at_px / scale - BORDER_MM, top.at_px / scale - BORDER_MM]
    below = height / scale - CARD_HEIGHT_MM - margins[2]
    if not all(-1.0 <= margin <= MAX_INSET_MM for margin in (*margins, below)):
        return None
    return _Place(
        left_mm=margins[0], top_mm=margins[2], px_per_mm_x=scale, px_per_mm_y=scale, confidence=ASIDE_CONFIDENCE
    )


def _bleed(upright: NDArray[np.uint8]) -> tuple[float, float, float]:
    """Return the bleed at the sides and at the top, in mm, and the confidence in them."""
    height, width = (int(side) for side in upright.shape)
    by_ratio = bleed_of_ratio(min(width / height, MAX_RATIO))
    snapped = BLEED_MM if by_ratio > BLEED_MM / 2 else 0.0
    near = abs(by_ratio - snapped)
    border = border_fraction(upright)
    if border is None:
        return snapped, snapped, 0.6 if near < 0.6 else 0.3
    by_border = (2 * BORDER_MM - CARD_WIDTH_MM * border) / (2 * (border - 1))
    if near >= 0.4 and abs(by_border - by_ratio) < min(0.8, abs(by_border - snapped)):
        return by_ratio, by_ratio, 0.85  # An unusual bleed, which ratio and border agree on.
    if abs(by_border - snapped) < 1.3:
        # A border's width is also that of a ground beside the card, where the ratio is no card's.
        return snapped, snapped, 0.95 if near < 0.6 else 0.8 if near < MAX_ODD_MM else ASIDE_CONFIDENCE
    if snapped + 1.3 <= by_border <= MAX_INSET_MM:
        px_per_mm = width / (CARD_WIDTH_MM + 2 * by_border)
        return by_border, (height / px_per_mm - CARD_HEIGHT_MM) / 2, 0.6  # An inset may differ; pixels are square.
    return snapped, snapped, 0.4 if near < 0.6 else 0.2


def border_fraction(upright: NDArray[np.uint8]) -> float | None:
    """Return the share of the width that the even border at both sides takes, or None where there is none.

    Rows of the middle half vote; the two sides must agree within a third, as a border does and a background seldom.
    """
    height, width = (int(side) for side in upright.shape)
    middle = upright[height // 4 : height * 3 // 4 : max(1, height // 64)].astype(np.int16)
    limit = int(width * 0.2)
    sides = [_run(middle[:, :limit]), _run(middle[:, ::-1][:, :limit])]
    left, right = sides
    if min(left, right) < 0.02 * width or abs(left - right) > 0.34 * max(left, right):
        return None
    return float(left + right) / width


def _run(strip: Strip) -> float:
    """Return the median number of pixels from the edge that look like the edge itself."""
    low, middle, high = percentiles_of_few(first_change(strip, skip=max(1, strip.shape[1] // 40)), (25, 50, 75))
    return middle if high - low <= 0.25 * middle + 2 else 0.0
