"""How round the corners of a card are, where the picture shows what lies outside of them.

Every picture of a whole, trimmed card with rounded corners has four small areas that are not card. A picture with bleed,
a cut one, and one on a background have none: then nothing is measured.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from cardpicker.stage_c.imaging.geometry import CARD_HEIGHT_MM, CARD_WIDTH_MM

ASPECT = CARD_WIDTH_MM / CARD_HEIGHT_MM
MAX_ASPECT_ERROR = 0.02  #: A picture of another shape shows more or less than the card.
REACH_MM = 8.0  #: Twice the roundest corner.
MIN_CONTRAST = 60  #: Gray levels between the border and what lies outside.
MIN_RADIUS_MM = 0.8  #: Less is a square corner with a blurred edge.
MIN_OVERLAP = 0.85  #: Of the area outside and that of a circle of the measured radius, as intersection over union.
MAX_SPREAD = 0.12  #: Of the radius, between the corners.
MIN_CORNERS = 3

#: Area outside a quarter circle in a square of its radius.
_OUTSIDE = 1.0 - math.pi / 4.0


def corner_radius_mm(gray: NDArray[np.uint8]) -> float | None:
    """Return the radius of the card's corners, or None where they are not to be seen.

    Args:
        gray: the whole picture, shape (height, width), at least 4 pixels a millimeter to be of use.
    """
    height, width = gray.shape
    if abs(width / height / ASPECT - 1.0) > MAX_ASPECT_ERROR:
        return None
    px_per_mm = (width / CARD_WIDTH_MM + height / CARD_HEIGHT_MM) / 2
    radii = [radius for tile in _tiles(gray, px_per_mm) if (radius := _radius_px(tile)) is not None]
    if len(radii) < MIN_CORNERS:
        return None
    middle = float(np.median(radii))
    agreeing = [radius for radius in radii if abs(radius - middle) <= MAX_SPREAD * middle]
    if len(agreeing) < MIN_CORNERS:
        return None
    radius_mm = float(np.mean(agreeing)) / px_per_mm
    return radius_mm if radius_mm >= MIN_RADIUS_MM else None


def _tiles(gray: NDArray[np.uint8], px_per_mm: float) -> list[NDArray[np.float32]]:
    """Return the four corners, each turned so that the picture's corner is at the top left."""
    reach = max(8, round(REACH_MM * px_per_mm))
    turned = (gray, gray[:, ::-1], gray[::-1], gray[::-1, ::-1])
    return [picture[:reach, :reach].astype(np.float32) for picture in turned]


def _radius_px(tile: NDArray[np.float32]) -> float | None:
    """Return the radius of one corner, or None where the area outside is no rounded corner."""
    outside = float(tile[:2, :2].mean())
    beyond = len(tile) * 3 // 4
    border = float(np.median(np.concatenate([tile[:2, beyond:].ravel(), tile[beyond:, :2].ravel()])))
    if abs(outside - border) < MIN_CONTRAST:
        return None
    cover = np.clip((tile - border) / (outside - border), 0.0, 1.0)
    # Only what joins the corner along its row and its column counts: the frame may be as light as the outside.
    light = cover > 0.5
    joined = np.logical_and.accumulate(light, axis=0) & np.logical_and.accumulate(light, axis=1)
    radius = math.sqrt(joined.sum() / _OUTSIDE)
    if not 1.0 <= radius < len(tile):
        return None
    steps = radius - (np.arange(len(tile), dtype=np.float32) + 0.5)
    inside_square = (steps[:, None] > 0) & (steps[None, :] > 0)
    model = inside_square & (steps[:, None] ** 2 + steps[None, :] ** 2 > radius**2)
    union = np.logical_or(model, joined).sum()
    return radius if np.logical_and(model, joined).sum() >= MIN_OVERLAP * union else None
