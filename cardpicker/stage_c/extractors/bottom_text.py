"""Reads the small print of a card's bottom band in as few OCR calls as it takes, and settles which way up the card is.

It stores rows of text with their places; what they mean is the other extractors' business, so that stored text can be
parsed again without the image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cardpicker.stage_c.evidence import ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.artist_names import best_artist
from cardpicker.stage_c.extractors.collector_parse import LineRead, is_beside, parse_rows
from cardpicker.stage_c.extractors.consensus import is_certain
from cardpicker.stage_c.extractors.geometry import fitted
from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow, ReadWord
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.geometry import BoxMm, CardFit
from cardpicker.stage_c.imaging.list_mark import pairs, without_mark
from cardpicker.stage_c.imaging.ocr import ACTIVE, Layout, OcrEngine, join_rows
from cardpicker.stage_c.imaging.textrows import SURE_FIT, TextRow, find_rows, pack_rows

BAND_MM: BoxMm = (0.5, 78.75, 62.5, 88.5)  #: No frame has small print above.
UNSURE_BAND_MM: BoxMm = (-9.0, 77.5, 72.0, 95.0)  #: Where the card is not placed well: all that the picture shows.
CUT_MM = 0.35  #: From where the picture or the band ends: a letter that begins nearer may be cut.
MAX_CALLS = 4
MAX_LINE_GLYPH_MM = 1.5  #: Rules text and type lines are larger.
LEVEL_MM = 0.5  #: Above the line's upper row, where the legal line may begin.
BESIDE_MARK_MM = 0.35  #: Less than the room between the mark and the print.
MIN_LEGIBLE = 0.5
MIN_GLYPHS = 5  #: A row of fewer, of which nothing was read, is no line of text.
UNBELIEVED = 0.5  #: Mean belief below which a row may be text of the other polarity.
#: How rows are shown to the engine: strokes alone or plain gray, and the zoom. Unlike views err unlike.
VARIANTS = {"gray": (False, 0.85), "strokes": (True, 1.35), "gray-large": (False, 1.2)}
_LEGIBLE = re.compile(r"wizard|coast|illus|proxy", re.IGNORECASE)


class BandReader:
    """Counts and keeps the OCR calls over one image."""

    def __init__(
        self, image: NormalizedImage, engine: OcrEngine, known_sets: frozenset[str], artists: tuple[str, ...]
    ) -> None:
        self._image = image
        self._engine = engine
        self._known = known_sets
        self._artists = artists
        self.calls = 0

    def rows(self, fit: CardFit) -> tuple[TextRow, ...]:
        """Return where the rows of small print are when the card lies as ``fit`` says."""
        rows = find_rows(self._image.gray, fit, self._band(fit))
        boxes = without_mark(self._image.gray, fit, [row.box_mm for row in rows])
        return tuple(
            row if row.box_mm == box else replace(row, box_mm=box, margin_mm=BESIDE_MARK_MM)
            for row, box in zip(rows, boxes, strict=True)
        )

    def _band(self, fit: CardFit) -> BoxMm:
        return BAND_MM if fit.confidence >= SURE_FIT else UNSURE_BAND_MM

    def read(self, fit: CardFit, rows: Sequence[TextRow], variant: str) -> ReadPass:
        """Read ``rows`` in one call."""
        if not rows or self.calls >= MAX_CALLS:
            return ReadPass(variant=variant, rows=())
        self.calls += 1
        strokes_only, zoom = VARIANTS[variant]
        packed = pack_rows(self._image.gray, fit, rows, strokes_only=strokes_only, zoom=zoom)
        read = self._engine.read(packed.pixels, layout=Layout.LINE if len(rows) == 1 else Layout.BLOCK)
        first = fit.clip(self._band(fit))[0]
        found = []
        for index, (row, words) in enumerate(zip(rows, join_rows(read.words, packed.spans), strict=True)):
            parts = [(part, word.confidence) for word in words for part in word.text.split()]
            if parts:
                left, top, right, bottom = row.box_mm
                found.append(
                    ReadRow(
                        words=tuple(ReadWord(text=text, confidence=belief) for text, belief in parts),
                        left_mm=left,
                        top_mm=top,
                        right_mm=right,
                        bottom_mm=bottom,
                        glyph_mm=row.glyph_height_mm,
                        cut=packed.x_mm(index, words[0].box_px[0]) < first + CUT_MM,
                    )
                )
        return ReadPass(variant=variant, rows=tuple(found))

    def names_artist(self, row: ReadRow) -> bool:
        """Whether ``row`` names an artist of the card's printings."""
        return best_artist(row.text, self._artists)[0] is not None

    def line(self, read: ReadPass) -> LineRead:
        """Return the collector line of one pass."""
        return parse_rows(read.rows, self._known)


def extract(
    image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
) -> Reading:
    """Return the passes over the bottom band, the turn that made it legible, and what it cost."""
    engine = ACTIVE.get()
    reader = BandReader(image, engine, lexicon.set_codes, context.artists)
    fit = fitted(image)
    rows = reader.rows(fit)
    passes = [_first_pass(reader, fit, rows)]
    if not is_legible(passes, reader):
        turned = fit.turned()
        other_rows = reader.rows(turned)
        other = [_first_pass(reader, turned, other_rows)]
        if is_legible(other, reader):
            fit, rows, passes = turned, other_rows, other
    _settle(reader, fit, rows, passes)
    return {
        "passes": [read.to_json() for read in passes if read.rows],
        "rotation_deg": fit.rotation_deg,
        "legible": is_legible(passes, reader),
        "rows_found": len(rows),
        "ocr_calls": reader.calls,
        "engine": engine.name,
    }


def line_first(rows: Sequence[TextRow]) -> list[TextRow]:
    """Return the lowest two rows that stand as a collector line does, with all that is level with them or below.

    All rows where none stand so: what lies above a line is rules text, and costs more than the line.
    """
    small = [row for row in rows if row.glyph_height_mm <= MAX_LINE_GLYPH_MM]
    found = [(small[lower].box_mm[3], small[upper].box_mm[1]) for upper, lower in pairs([row.box_mm for row in small])]
    top = max(found, default=(0.0, 0.0))[1] - LEVEL_MM
    return [row for row in rows if row.box_mm[1] >= top]


def _first_pass(reader: BandReader, fit: CardFit, rows: Sequence[TextRow]) -> ReadPass:
    """Read the line, and whatever else there is only where the line is not among what was read."""
    chosen = line_first(rows)
    first = reader.read(fit, chosen, "gray")
    rest = [row for row in rows if row not in chosen]
    if not rest or (is_legible([first], reader) and reader.line(first).number is not None):
        return first
    more = reader.read(fit, rest, "gray").rows
    return replace(first, rows=tuple(sorted((*first.rows, *more), key=lambda row: (row.top_mm, row.left_mm))))


def is_legible(passes: Sequence[ReadPass], reader: BandReader) -> bool:
    """Whether any pass has something that only an upright card's bottom says."""
    for read in passes:
        line = reader.line(read)
        if line.number is not None and line.number.confidence >= MIN_LEGIBLE:
            return True
        if line.set is not None and line.set.code.known and line.set.code.distance == 0:
            return True
        if any(_LEGIBLE.search(row.text) or reader.names_artist(row) for row in read.rows):
            return True
    return False


def _settle(reader: BandReader, fit: CardFit, rows: Sequence[TextRow], passes: list[ReadPass]) -> None:
    """Read again, another way, the rows that may hold the collector line, until the passes agree or calls run out."""
    for variant in list(VARIANTS)[1:]:
        lines = [reader.line(read) for read in passes]
        silent = len(passes) > 1 and all(line.number is None and line.set is None for line in lines)
        if silent or is_certain(lines):
            return
        weak = _weak_rows(rows, passes, lines) if is_legible(passes, reader) else rows
        if not weak:
            return
        passes.append(reader.read(fit, weak, variant))


def _weak_rows(rows: Sequence[TextRow], passes: Sequence[ReadPass], lines: Sequence[LineRead]) -> list[TextRow]:
    """Return the rows that may hold a number or a set code, by what was read there or by their place above a code."""
    boxes: set[tuple[float, float]] = set()
    for read, line in zip(passes, lines, strict=True):
        code_row = read.rows[line.set.row] if line.set is not None else None
        boxes |= {
            (row.left_mm, row.top_mm)
            for row in read.rows
            if _may_be_line(row, code_row) or (code_row is not None and is_beside(row, code_row))
        }
    shown = [*rows, *(row.rival for row in rows if row.rival is not None)]
    weak = [row for row in shown if row.box_mm[:2] in boxes]
    if any(line.number is not None for line in lines):
        return weak
    belief = {(row.left_mm, row.top_mm): row.confidence for read in passes for row in read.rows}
    for row in rows:
        if row not in weak and row.glyphs >= MIN_GLYPHS and belief.get(row.box_mm[:2], 0.0) < UNBELIEVED:
            weak.append(row.rival or row)
    return weak


def _may_be_line(row: ReadRow, code_row: ReadRow | None) -> bool:
    text = row.text
    if code_row is not None and _LEGIBLE.search(text):
        return False  # A card with a set code has its number beside it, not in the legal line.
    digits = sum(c.isdigit() for c in text)
    return digits >= 2 or re.search(r"[A-Z0-9]{3}.{0,3}(EN|DE|FR|IT|ES|PT|JA|KO|RU)\b", text) is not None
