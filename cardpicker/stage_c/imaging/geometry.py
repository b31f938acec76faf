"""Where the card lies in its picture: one map from card millimeters to pixels, with how far to trust it.

The origin of the millimeters is the top left corner of the trimmed card (63 × 88 mm); bleed lies at negative values.
Only upright rectangles and quarter turns are found here; the text in the bottom band settles which way up the card is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

CARD_WIDTH_MM = 63.0
CARD_HEIGHT_MM = 88.0
BLEED_MM = 3.175
BORDER_MM = 2.8  #: Typical printed border from trim to frame at both sides, 2.5 to 3.1 over the frames of all years.
MAX_INSET_MM = 12.0

Matrix = tuple[float, float, float, float, float, float]
BoxMm = tuple[float, float, float, float]  #: Left, top, right, bottom.


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

    @property
    def bleed_mm(self) -> float:
        """Mean distance between the picture's edge and the trim; negative when the trim is cut into."""
        return (self.bleed_left_mm + self.bleed_top_mm) / 2

    @property
    def has_bleed(self) -> bool:
        """Whether the picture shows more than the trimmed card by at least a third of the usual bleed."""
        return self.bleed_mm > BLEED_MM / 3

    def point(self, x_mm: float, y_mm: float) -> tuple[float, float]:
        """Return the pixel of a card position."""
        x = (x_mm + self.bleed_left_mm) * self.px_per_mm_x
        y = (y_mm + self.bleed_top_mm) * self.px_per_mm_y
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

    def clip(self, box_mm: BoxMm) -> BoxMm:
        """Return the part of ``box_mm`` that the picture shows."""
        upright = (self.width_px, self.height_px)
        width, height = upright if self.rotation_deg in (0, 180) else upright[::-1]
        return (
            max(box_mm[0], -self.bleed_left_mm),
            max(box_mm[1], -self.bleed_top_mm),
            min(box_mm[2], width / self.px_per_mm_x - self.bleed_left_mm),
            min(box_mm[3], height / self.px_per_mm_y - self.bleed_top_mm),
        )

    def turned(self) -> CardFit:
        """Return the same fit with the card the other way up."""
        return CardFit(
            width_px=self.width_px,
            height_px=self.height_px,
            rotation_deg=(self.rotation_deg + 180) % 360,
            bleed_left_mm=self.bleed_left_mm,
            bleed_top_mm=self.bleed_top_mm,
            px_per_mm_x=self.px_per_mm_x,
            px_per_mm_y=self.px_per_mm_y,
            confidence=self.confidence,
        )


def bleed_of_ratio(ratio: float) -> float:
    """Return the bleed in mm that a picture of ``ratio`` (width / height) implies; negative when it is cut."""
    return (CARD_HEIGHT_MM * ratio - CARD_WIDTH_MM) / (2 * (1 - ratio))


def fit_card(gray: NDArray[np.uint8]) -> CardFit:
    """Return where the card lies in ``gray``, from its ratio and the width of its border.

    A picture wider than high is taken to lie on its left side; `CardFit.turned` gives the other guess.

    Args:
        gray: shape (height, width), grey levels 0 to 255.
    """
    height_px, width_px = gray.shape
    rotation = 90 if width_px > height_px else 0
    upright = np.rot90(gray, -1) if rotation else gray
    height, width = (int(side) for side in upright.shape)
    bleed, top, confidence = _bleed(upright)
    return CardFit(
        width_px=width_px,
        height_px=height_px,
        rotation_deg=rotation,
        bleed_left_mm=bleed,
        bleed_top_mm=top,
        px_per_mm_x=width / (CARD_WIDTH_MM + 2 * bleed),
        px_per_mm_y=height / (CARD_HEIGHT_MM + 2 * top),
        confidence=confidence,
    )


def _bleed(upright: NDArray[np.uint8]) -> tuple[float, float, float]:
    """Return the bleed at the sides and at the top, in mm, and the confidence in them."""
    height, width = (int(side) for side in upright.shape)
    by_ratio = bleed_of_ratio(min(width / height, 0.95))
    snapped = BLEED_MM if by_ratio > BLEED_MM / 2 else 0.0
    near = abs(by_ratio - snapped)
    border = border_fraction(upright)
    if border is None:
        return snapped, snapped, 0.6 if near < 0.6 else 0.3
    by_border = (2 * BORDER_MM - CARD_WIDTH_MM * border) / (2 * (border - 1))
    if abs(by_border - snapped) < 1.3:
        return snapped, snapped, 0.95 if near < 0.6 else 0.8
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


def _run(strip: NDArray[np.int16], tolerance: int = 40) -> float:
    """Return the median number of pixels from the edge that look like the edge itself."""
    skip = max(1, strip.shape[1] // 40)
    edge = np.median(strip[:, skip : 3 * skip + 1], axis=1, keepdims=True)
    differs = np.abs(strip - edge) > tolerance
    differs[:, : 2 * skip] = False
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), strip.shape[1])
    spread = float(np.percentile(first, 75) - np.percentile(first, 25))
    return float(np.median(first)) if spread <= 0.25 * float(np.median(first)) + 2 else 0.0
