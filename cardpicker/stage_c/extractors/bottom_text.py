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
from cardpicker.stage_c.extractors.collector_parse import LineRead, parse_passes
from cardpicker.stage_c.extractors.consensus import doubts
from cardpicker.stage_c.extractors.geometry import fitted
from cardpicker.stage_c.extractors.rows import ReadPass, ReadRow, ReadWord
from cardpicker.stage_c.extractors.second_look import COMMON_WORD, rows_in_doubt
from cardpicker.stage_c.imaging.decode import NormalizedImage
from cardpicker.stage_c.imaging.geometry import CARD_WIDTH_MM, BoxMm, CardFit
from cardpicker.stage_c.imaging.list_mark import pairs, without_mark
from cardpicker.stage_c.imaging.ocr import ACTIVE, Layout, OcrEngine, join_rows
from cardpicker.stage_c.imaging.textrows import SURE_FIT, TextRow, find_rows, pack_rows

BAND_MM: BoxMm = (0.5, 78.75, 62.5, 88.5)  #: No frame has small print above.
UNSURE_BAND_MM: BoxMm = (-9.0, 77.5, 72.0, 95.0)  #: Where the card is not placed well: all that the picture shows.
#: Where the picture's ratio says that it shows a ground too: a card that is taken for larger than it is has its line higher.
GROUND_BAND_MM: BoxMm = (-9.0, 72.5, 72.0, 95.0)
CUT_MM = 0.35  #: From where the picture or the band ends: a letter that begins nearer may be cut.
MAX_CALLS = 4
MAX_LINE_GLYPH_MM = 1.5  #: Rules text and type lines are larger.
LEVEL_MM = 0.5  #: Above the line's upper row, where the legal line may begin.
BESIDE_MARK_MM = 0.35  #: Less than the room between the mark and the print.
MIN_LEGIBLE = 0.5
CLEAR_SIGN = 0.6
CONDENSED_WORDS = 0.7  #: Of the width; a year is read from as many columns as at full width.
#: How rows are shown to the engine: strokes alone or plain gray, and the zoom. Unlike views err unlike.
VARIANTS = {"gray": (False, 0.85), "strokes": (True, 1.35), "gray-large": (False, 1.2)}
_SIGN = re.compile(r"©|\b\w{0,2}l+us[.,]", re.IGNORECASE)


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
        if fit.confidence >= SURE_FIT:
            return BAND_MM
        return UNSURE_BAND_MM if fit.has_card_ratio else GROUND_BAND_MM

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

    def lines(self, passes: Sequence[ReadPass]) -> list[LineRead]:
        """Return the collector line of each pass."""
        return parse_passes(passes, self._known)


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

    All rows where none stand so: what lies above a line is rules text, and costs more than the line. The legal words at
    the right of a line are condensed: they repeat themselves on every card, and a digit of the line does not.
    """
    small = [row for row in rows if row.glyph_height_mm <= MAX_LINE_GLYPH_MM]
    found = max(pairs([row.box_mm for row in small]), key=lambda pair: _line_place(small, pair), default=None)
    if found is None:
        return list(rows)
    upper, lower = small[found[0]].box_mm, small[found[1]].box_mm
    words_mm = max(CARD_WIDTH_MM / 2, upper[2], lower[2])
    return [
        replace(row, condensed=CONDENSED_WORDS) if row.box_mm[0] > words_mm else row
        for row in rows
        if row.box_mm[1] >= upper[1] - LEVEL_MM
    ]


def _line_place(rows: Sequence[TextRow], pair: tuple[int, int]) -> tuple[float, float]:
    upper, lower = pair
    return rows[lower].box_mm[3], rows[upper].box_mm[1]


def _first_pass(reader: BandReader, fit: CardFit, rows: Sequence[TextRow]) -> ReadPass:
    """Read the line, and whatever else there is only where the line is not among what was read."""
    chosen = line_first(rows)
    first = reader.read(fit, chosen, "gray")
    shown = {row.box_mm for row in chosen}
    rest = [row for row in rows if row.box_mm not in shown]
    if not rest or (is_legible([first], reader) and reader.lines([first])[0].number is not None):
        return first
    more = reader.read(fit, rest, "gray").rows
    return replace(first, rows=tuple(sorted((*first.rows, *more), key=lambda row: (row.top_mm, row.left_mm))))


def is_legible(passes: Sequence[ReadPass], reader: BandReader) -> bool:
    """Whether any pass has something that only an upright card's bottom says."""
    for read, line in zip(passes, reader.lines(passes), strict=True):
        if line.number is not None and line.number.confidence >= MIN_LEGIBLE:
            return True
        if line.set is not None and line.set.code.known and line.set.code.distance == 0:
            return True
        if any(_is_upright(row) or reader.names_artist(row) for row in read.rows):
            return True
    return False


def _is_upright(row: ReadRow) -> bool:
    """Whether ``row`` has a word that is found at the bottom alone; short signs have to be read clearly."""
    return bool(COMMON_WORD.search(row.text) or (row.confidence >= CLEAR_SIGN and _SIGN.search(row.text)))


def _settle(reader: BandReader, fit: CardFit, rows: Sequence[TextRow], passes: list[ReadPass]) -> None:
    """Read again, another way, what of the collector line is in doubt, until the passes agree or calls run out."""
    for variant in list(VARIANTS)[1:]:
        lines = reader.lines(passes)
        left = doubts(lines)
        silent = len(passes) > 1 and all(line.number is None and line.set is None for line in lines)
        if silent or not (left.number or left.set):
            return
        weak = rows_in_doubt(rows, passes, lines, left, reader.names_artist) if is_legible(passes, reader) else rows
        if not weak:
            return
        passes.append(reader.read(fit, weak, variant))
