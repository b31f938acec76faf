"""Small print in a band of a card: where its rows are, and one clean picture of them for one OCR call.

A row is found by its strokes alone, so it may be light on dark or dark on light, over a frame or over art, and rows at
the left and at the right of a card never run into each other. Nothing here reads a letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np
from PIL import Image, ImageFilter

from cardpicker.stage_c.imaging.geometry import BoxMm, CardFit
from cardpicker.stage_c.imaging.glyphs import (
    FIND_PX_PER_MM,
    Glyph,
    aligned,
    chain_glyphs,
    find_glyphs,
    stroke_image,
    without_lines,
)
from cardpicker.stage_c.imaging.levels import Levels, counted_percentiles, percentiles

ROW_MIN_WIDTH_MM = 2.2
EXTEND_GAP_MM, EXTEND_MM, EXTEND_CLARITY = 1.3, 6.0, 4.5
MAX_ROWS, MAX_ROWS_UNSURE = 7, 12
CUT_MM, SURE_FIT = 0.2, 0.8
MARGIN_MM = 0.7
CLEAR_OF_NOISE = 2.2  #: Stroke height over the median of the row's box; texture alone stays below.
FAINT = 0.4  #: Of the strongest row's contrast: below it nothing is text when something stronger is.
STRAY = 0.25  #: The weight of a chain none of whose neighbors stand in line.
RIVAL, MIN_RIVAL_GLYPHS = 0.3, 6  #: Of the score.
TEXT_HEIGHT_PX = 30  #: Height of capitals at which the models read best.
PAGE_GAP_PX = 15
PX_PER_MM = (16.0, 40.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRow:
    """A run of small print."""

    box_mm: BoxMm
    glyph_height_mm: float
    light: bool  #: Light strokes on a darker ground.
    contrast: float  #: Mean stroke height in gray levels.
    glyphs: int
    clarity: float  #: Contrast over the median stroke height of its box.
    margin_mm: float = MARGIN_MM  #: Shown left of the box.
    condensed: float = 1.0  #: Of the width: the engine's network reads column after column, so that fewer cost less.
    score: float  #: Likelihood of being the text where rows of both polarities overlap.
    rival: TextRow | None = None  #: The row of the other polarity at its place, where that is nearly as likely.


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Page:
    """The band at the scale of finding, as one polarity sees it."""

    band: Levels
    strokes: Levels
    light: bool
    left_mm: float
    top_mm: float


def find_rows(gray: Levels, fit: CardFit, band_mm: BoxMm) -> tuple[TextRow, ...]:
    """Return the rows of small print in ``band_mm``, from top to bottom, then from left to right."""
    left, top, right, bottom = fit.clip(band_mm)
    size = (int((right - left) * FIND_PX_PER_MM), int((bottom - top) * FIND_PX_PER_MM))
    if min(size) < 8:
        return ()
    picture = fit.crop(gray, (left, top, right, bottom), size).filter(ImageFilter.GaussianBlur(0.5))
    band = _stretch(picture)
    rows = [row for light in (True, False) for row in _rows_of(band, light, left, top)]
    chosen: list[TextRow] = []
    strongest = max((row.contrast for row in rows if row.glyphs >= 6), default=0.0)
    for row in sorted(rows, key=lambda row: (-row.score, row.box_mm)):
        noise = row.contrast < FAINT * strongest or (
            row.clarity < CLEAR_OF_NOISE and row.contrast < 2 * FAINT * strongest
        )
        # Where the card is placed well, what the band cuts off is half a line of rules text.
        noise = noise or (fit.confidence >= SURE_FIT and row.box_mm[1] < band_mm[1] + CUT_MM)
        if not noise and not any(_overlap(row.box_mm, other.box_mm) > 0.3 for other in chosen):
            chosen.append(replace(row, rival=_rival(row, rows)))
    return tuple(
        sorted(
            chosen[: MAX_ROWS if fit.confidence >= SURE_FIT else MAX_ROWS_UNSURE],
            key=lambda row: (row.box_mm[1], row.box_mm[0]),
        )
    )


def _rival(row: TextRow, rows: Sequence[TextRow]) -> TextRow | None:
    near = (
        other
        for other in rows
        if other.light != row.light
        and other.score >= RIVAL * row.score
        and _overlap(other.box_mm, row.box_mm) > 0.5
        and other.glyphs >= MIN_RIVAL_GLYPHS
    )
    return max(near, key=lambda other: (other.score, other.box_mm), default=None)


def _stretch(band: Image.Image) -> Levels:
    """Return ``band`` with its lightest parts at white, so that a dim picture is judged like a bright one."""
    top = max(64.0, *counted_percentiles(band.histogram(), (99.5,)))
    lighter = np.minimum(np.arange(256) * (255.0 / top), 255.0).astype(np.uint8)
    return np.asarray(band.point(lighter.tolist()), dtype=np.uint8)


def _overlap(a: BoxMm, b: BoxMm) -> float:
    """Return the shared area as a share of the smaller box."""
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / min((a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1]))


def _rows_of(band: Levels, light: bool, left_mm: float, top_mm: float) -> list[TextRow]:
    strokes = without_lines(stroke_image(band, light, FIND_PX_PER_MM))
    page = _Page(band=band, strokes=strokes, light=light, left_mm=left_mm, top_mm=top_mm)
    return [row for chain in chain_glyphs(find_glyphs(strokes)) if (row := _row(chain, page)) is not None]


def _row(chain: Sequence[Glyph], page: _Page) -> TextRow | None:
    if len(chain) < 2:
        return None
    left, right = min(g.left for g in chain), max(g.right for g in chain)
    if right - left < ROW_MIN_WIDTH_MM * FIND_PX_PER_MM:
        return None
    height = float(median(g.bottom - g.top for g in chain))
    top = _ranked([g.top for g in chain], 0.2)
    bottom = _ranked([g.bottom for g in chain], 0.8)
    contrast = sum(g.energy for g in chain) / len(chain)
    inside = (slice(int(top), int(bottom) + 1), slice(left, right))
    clarity = contrast / max(1.0, *percentiles(page.strokes[inside], (50,)))
    if clarity >= EXTEND_CLARITY:
        left, right = _extent(page.strokes[inside[0]], left, right, contrast / 2)
    scale = 1 / FIND_PX_PER_MM
    return TextRow(
        box_mm=(
            page.left_mm + left * scale,
            page.top_mm + top * scale,
            page.left_mm + right * scale,
            page.top_mm + bottom * scale,
        ),
        glyph_height_mm=height * scale,
        light=page.light,
        contrast=contrast,
        glyphs=len(chain),
        clarity=clarity,
        score=contrast * len(chain) * (STRAY + aligned(chain)) * _stand_out(page.band[inside], page.light),
    )


def _ranked(values: Sequence[int], share: float) -> float:
    """Return the value below which ``share`` of ``values`` lie, interpolated; lists of a few are quicker so."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = ordered[int(place)]
    return low + (place - int(place)) * (ordered[min(int(place) + 1, len(ordered) - 1)] - low)


def _extent(strip: Levels, left: int, right: int, level: float) -> tuple[int, int]:
    """Return the row's ends with the faint or broken glyphs beside them that were no glyphs on their own."""
    inked = np.flatnonzero(strip.max(axis=0) >= level)
    gap, far = (int(mm * FIND_PX_PER_MM) for mm in (EXTEND_GAP_MM, EXTEND_MM))
    first, last = left, right
    for column in inked[inked < left][::-1].tolist():
        if first - column > gap or left - column > far:
            break
        first = column
    for column in inked[inked >= right].tolist():
        if column - last > gap or column - right > far:
            break
        last = column + 1
    return first, last


def _stand_out(pixels: Levels, light: bool) -> float:
    """Return how far the pixels off the ground are light (or dark), 0.4 to 1: text covers less of its box than the ground."""
    dark_end, ground, light_end = percentiles(pixels, (4, 50, 96))
    lighter, darker = light_end - ground, ground - dark_end
    ours, others = (lighter, darker) if light else (darker, lighter)
    return min(max(ours / max(1.0, others) - 0.2, 0.4), 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedRows:
    """Rows stacked in one picture, dark on white; ``spans`` holds each row's top and bottom pixel."""

    pixels: Levels
    spans: tuple[tuple[int, int], ...]
    scales: tuple[float, ...]  #: Pixels per millimeter of each row, from left to right.
    lefts_mm: tuple[float, ...]

    def x_mm(self, row: int, x_px: int) -> float:
        """Return where column ``x_px`` lies on the card, for the row of that index."""
        return self.lefts_mm[row] + (x_px - PAGE_GAP_PX) / self.scales[row]


def pack_rows(
    gray: Levels, fit: CardFit, rows: Sequence[TextRow], *, strokes_only: bool, zoom: float = 1.0
) -> PackedRows:
    """Stack ``rows`` in one picture for one OCR call.

    Args:
        strokes_only: show strokes alone (over art, glare and texture) instead of plain stretched gray.
        zoom: multiplies the height at which capitals are shown.
    """
    strips, scales, lefts = [], [], []
    for row in rows:
        scale = float(np.clip(TEXT_HEIGHT_PX * zoom / row.glyph_height_mm, PX_PER_MM[0], PX_PER_MM[1] * zoom))
        across = scale * row.condensed
        left, top, right, bottom = row.box_mm
        box = fit.clip((left - row.margin_mm, top - 0.3, right + 0.9, bottom + 0.3))
        size = (max(8, int((box[2] - box[0]) * across)), max(8, int((box[3] - box[1]) * scale)))
        pixels = np.asarray(fit.crop(gray, box, size), dtype=np.uint8)
        strips.append(_clean(pixels, row, scale, strokes_only))
        scales.append(across)
        lefts.append(box[0])
    gap = PAGE_GAP_PX
    width = max(strip.shape[1] for strip in strips) + 2 * gap
    page = np.full((sum(strip.shape[0] + gap for strip in strips) + gap, width), 255, dtype=np.uint8)
    spans, y = [], gap
    for strip in strips:
        page[y : y + strip.shape[0], gap : gap + strip.shape[1]] = strip
        spans.append((y, y + strip.shape[0]))
        y += strip.shape[0] + gap
    return PackedRows(pixels=page, spans=tuple(spans), scales=tuple(scales), lefts_mm=tuple(lefts))


def _clean(strip: Levels, row: TextRow, px_per_mm: float, strokes_only: bool) -> Levels:
    if strokes_only:
        ink = stroke_image(strip, row.light, px_per_mm)
        low, high = percentiles(ink, (45, 97))
        low = max(low, 0.25 * high)
    else:
        ink = strip if row.light else 255 - strip
        low, high = percentiles(ink, (55, 98))
    high = max(high, low + 24.0)
    paper = 255 - np.clip((np.arange(256) - low) * (255.0 / (high - low)), 0, 255)
    return np.asarray(paper.astype(np.uint8)[ink], dtype=np.uint8)
