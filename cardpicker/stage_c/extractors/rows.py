"""Rows of small print as they were read: plain values between the OCR, the parsers and a JSON column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cardpicker.stage_c.evidence import JSONValue, Reading

LEGAL_WORDS = ("wizards", "coast", "illus", "©", "™")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWord:
    """One word and the engine's belief in it, 0 to 1."""

    text: str
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRow:
    """One row, left to right, with its place on the card."""

    words: tuple[ReadWord, ...]
    left_mm: float
    top_mm: float
    right_mm: float
    bottom_mm: float
    glyph_mm: float  #: Median height of its glyphs.
    cut: bool = False  #: It begins where the picture ends: its first letter may be half of one.

    @property
    def text(self) -> str:
        """The row's words joined by single spaces."""
        return " ".join(word.text for word in self.words)

    @property
    def confidence(self) -> float:
        """Mean belief in the words, weighed by their length."""
        letters = sum(len(word.text) for word in self.words)
        return sum(word.confidence * len(word.text) for word in self.words) / letters if letters else 0.0

    def is_whole(self, start: int) -> bool:
        """Whether what begins at character ``start`` of ``text`` is all there."""
        return not self.cut or " " in self.text[:start]

    def confidence_at(self, start: int, end: int) -> float:
        """Return the lowest belief in the words that cover characters ``start`` to ``end`` of ``text``."""
        place, lowest = 0, 1.0
        for word in self.words:
            if place < end and place + len(word.text) > start:
                lowest = min(lowest, word.confidence)
            place += len(word.text) + 1
        return lowest

    def to_json(self) -> JSONValue:
        """Return the row as stored."""
        box = [round(v, 2) for v in (self.left_mm, self.top_mm, self.right_mm, self.bottom_mm)]
        cut: Reading = {"cut": True} if self.cut else {}
        return {
            "text": self.text,
            "box_mm": [*box],
            "glyph_mm": round(self.glyph_mm, 2),
            "word_confidence": [round(word.confidence, 3) for word in self.words],
            **cut,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPass:
    """What one OCR call read of the bottom band."""

    variant: str
    rows: tuple[ReadRow, ...]

    def to_json(self) -> JSONValue:
        """Return the pass as stored."""
        return {"variant": self.variant, "rows": [row.to_json() for row in self.rows]}


def passes_of(reading: Reading | None) -> tuple[ReadPass, ...]:
    """Return the passes stored in a ``bottom_text`` reading; none when it is absent or failed."""
    stored = (reading or {}).get("passes")
    if not isinstance(stored, list):
        return ()
    return tuple(
        ReadPass(variant=str(item.get("variant", "")), rows=tuple(_rows(item.get("rows"))))
        for item in stored
        if isinstance(item, dict)
    )


def _rows(stored: JSONValue) -> Iterable[ReadRow]:
    for item in stored if isinstance(stored, list) else []:
        if not isinstance(item, dict):
            continue
        texts = str(item.get("text", "")).split(" ")
        beliefs = _floats(item.get("word_confidence"))
        box = _floats(item.get("box_mm"))
        if len(beliefs) == len(texts) and len(box) == 4:
            yield ReadRow(
                words=tuple(ReadWord(text=t, confidence=c) for t, c in zip(texts, beliefs, strict=True)),
                left_mm=box[0],
                top_mm=box[1],
                right_mm=box[2],
                bottom_mm=box[3],
                glyph_mm=_floats([item.get("glyph_mm", 0.0)])[0],
                cut=item.get("cut") is True,
            )


def _floats(stored: JSONValue) -> list[float]:
    return [float(v) for v in stored if isinstance(v, int | float)] if isinstance(stored, list) else []
