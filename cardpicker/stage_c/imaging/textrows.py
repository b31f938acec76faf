"""Small print in a band of a card: where its rows are, and one clean picture of them for one OCR call.

A row is found by its strokes alone, so it may be light on dark or dark on light, over a frame or over art, and rows at
the left and at the right of a card never run into each other. Nothing here reads a letter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from PIL import ImageFilter
from scipy import ndimage

from cardpicker.stage_c.imaging.geometry import BoxMm, CardFit
from cardpicker.stage_c.imaging.levels import Levels, closed, opened, percentiles, slide_max

FIND_PX_PER_MM = 12
STROKE_LEVELS = (0.35, 0.55)  #: Of the strongest stroke nearby.
STROKE_MM = 0.6  #: Anything thicker is no stroke of small print.
GLYPH_HEIGHT_MM = (0.55, 2.3)
GLYPH_WIDTH_MM = 9.0  #: Blurred letters run together; a frame line is longer still.
ROW_GAP_MM = 2.6  #: Between a number and its rarity; the left and right blocks are farther apart.
ROW_MIN_WIDTH_MM = 2.2
EXTEND_GAP_MM, EXTEND_MM, EXTEND_CLARITY = 1.3, 6.0, 4.5
MAX_ROWS, MAX_ROWS_UNSURE = 7, 9
CUT_MM, SURE_FIT = 0.2, 0.8
MARGIN_MM = 0.7
LINE_MM = (4.5, 2.8)  #: Straight runs at least this wide or this high are frame lines, not letters.
CLEAR_OF_NOISE = 2.2  #: Stroke height over the median of the row's box; texture alone stays below.
FAINT = 0.4  #: Of the strongest row's contrast: below it nothing is text when something stronger is.
TEXT_HEIGHT_PX = 30  #: Height of capitals at which the models read best.
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
    score: float  #: Likelihood of being the text where rows of both polarities overlap.


@dataclass(frozen=True, slots=True)
class _Glyph:
    left: int
    top: int
    right: int
    bottom: int
    energy: float


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
    band = _stretch(np.asarray(picture))
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
            chosen.append(row)
    return tuple(
        sorted(
            chosen[: MAX_ROWS if fit.confidence >= SURE_FIT else MAX_ROWS_UNSURE],
            key=lambda row: (row.box_mm[1], row.box_mm[0]),
        )
    )


def _stretch(band: Levels) -> Levels:
    """Return ``band`` with its lightest parts at white, so that a dim picture is judged like a bright one."""
    top = max(64.0, *percentiles(band, (99.5,)))
    lighter = np.minimum(np.arange(256) * (255.0 / top), 255.0).astype(np.uint8)
    return np.asarray(lighter[band], dtype=np.uint8)


def _overlap(a: BoxMm, b: BoxMm) -> float:
    """Return the shared area as a share of the smaller box."""
    wide = min(a[2], b[2]) - max(a[0], b[0])
    high = min(a[3], b[3]) - max(a[1], b[1])
    if wide <= 0 or high <= 0:
        return 0.0
    return wide * high / min((a[2] - a[0]) * (a[3] - a[1]), (b[2] - b[0]) * (b[3] - b[1]))


def stroke_image(gray: Levels, light: bool, px_per_mm: float) -> Levels:
    """Return how much each pixel stands out as a thin light (or dark) stroke, in gray levels."""
    size = max(3, int(STROKE_MM * px_per_mm) | 1)
    return gray - opened(gray, (size, size)) if light else closed(gray, (size, size)) - gray


def _rows_of(band: Levels, light: bool, left_mm: float, top_mm: float) -> list[TextRow]:
    strokes = _without_lines(stroke_image(band, light, FIND_PX_PER_MM))
    page = _Page(band=band, strokes=strokes, light=light, left_mm=left_mm, top_mm=top_mm)
    return [row for chain in _chains(_glyphs(strokes)) if (row := _row(chain, page)) is not None]


def _glyphs(strokes: Levels) -> list[_Glyph]:
    """Return the connected strokes of a letter's size; two rows that touch are parted at a higher level.

    A low level keeps thin strokes whole, a high one parts rows whose letters touch.
    """
    around = slide_max(strokes, (FIND_PX_PER_MM | 1, 2 * FIND_PX_PER_MM | 1))
    rest = strokes > 14
    glyphs: list[_Glyph] = []
    low, high = (mm * FIND_PX_PER_MM for mm in GLYPH_HEIGHT_MM)
    for level in STROKE_LEVELS:
        inked = rest & (strokes > around * np.float32(level))
        labels, count = ndimage.label(inked, structure=np.ones((3, 3)))
        which = labels[inked]
        areas = np.bincount(which, minlength=count + 1)
        energies = np.bincount(which, strokes[inked], count + 1) / np.maximum(areas, 1)
        labels[inked] = np.where(areas[which] >= low, which, 0)  # Most are specks, too small for any glyph.
        rest = np.zeros_like(rest)
        for index, place in enumerate(ndimage.find_objects(labels), start=1):
            if place is None:
                continue
            height, width = place[0].stop - place[0].start, place[1].stop - place[1].start
            if high < height <= 2 * high:
                rest[place] |= labels[place] == index
            elif low <= height <= high and width <= GLYPH_WIDTH_MM * FIND_PX_PER_MM and width <= 14 * height:
                glyphs.append(
                    _Glyph(place[1].start, place[0].start, place[1].stop, place[0].stop, float(energies[index]))
                )
    return glyphs


def _without_lines(strokes: Levels) -> Levels:
    """Take away the straight lines of a frame, whose brightness would hide the print beside them."""
    wide, high = (int(mm * FIND_PX_PER_MM) | 1 for mm in LINE_MM)
    return strokes - np.maximum(opened(strokes, (1, wide)), opened(strokes, (high, 1)))


def _chains(glyphs: Sequence[_Glyph]) -> list[list[_Glyph]]:
    """Join glyphs, from left to right, to the row whose last glyph stands beside them."""
    chains: list[list[_Glyph]] = []
    for glyph in sorted(glyphs, key=lambda g: (g.left, g.top)):
        best: list[_Glyph] | None = None
        nearest = ROW_GAP_MM * FIND_PX_PER_MM
        for chain in chains:
            recent = chain[-2:]  # A pen or a comma stands off the line; the letters before it do not.
            top, bottom = min(g.top for g in recent), max(g.bottom for g in recent)
            shared = min(glyph.bottom, bottom) - max(glyph.top, top)
            if shared < 0.6 * max(1, min(glyph.bottom - glyph.top, bottom - top)):
                continue
            gap = glyph.left - max(g.right for g in recent)
            if gap < nearest:
                best, nearest = chain, gap
        if best is None:
            chains.append([glyph])
        else:
            best.append(glyph)
    return chains


def _row(chain: Sequence[_Glyph], page: _Page) -> TextRow | None:
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
        score=contrast * len(chain) * (1.0 if _stands_out(page.band[inside], page.light) else 0.4),
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
    for column in inked[inked < left][::-1]:
        if first - column > gap or left - column > far:
            break
        first = int(column)
    for column in inked[inked >= right]:
        if column - last > gap or column - right > far:
            break
        last = int(column) + 1
    return first, last


def _stands_out(pixels: Levels, light: bool) -> bool:
    """Whether the pixels farthest from the ground are light (or dark): text covers less of its box than the ground."""
    dark_end, ground, light_end = percentiles(pixels, (4, 50, 96))
    return (light_end - ground >= ground - dark_end) == light


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedRows:
    """Rows stacked in one picture, dark on white; ``spans`` holds each row's top and bottom pixel."""

    pixels: Levels
    spans: tuple[tuple[int, int], ...]
    scales: tuple[float, ...]  #: Pixels per millimeter of each row.
    lefts_mm: tuple[float, ...]


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
        left, top, right, bottom = row.box_mm
        box = fit.clip((left - row.margin_mm, top - 0.3, right + 0.9, bottom + 0.3))
        size = (max(8, int((box[2] - box[0]) * scale)), max(8, int((box[3] - box[1]) * scale)))
        pixels = np.asarray(fit.crop(gray, box, size), dtype=np.uint8)
        strips.append(_clean(pixels, row, scale, strokes_only))
        scales.append(scale)
        lefts.append(box[0])
    gap = TEXT_HEIGHT_PX // 2
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
