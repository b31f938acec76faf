"""The seam to an OCR engine: what a reading looks like, which engines there are, and the one that this process uses.

An engine that cannot read is an error at warm-up, never "no text" on a card.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

# Native libraries read it when they are loaded, and both engines are loaded after this module.
os.environ["OMP_THREAD_LIMIT"] = "1"

SAMPLE_TEXT = "123/287 R"


class OcrError(Exception):
    """Root of this package's errors about reading text."""


class OcrUnavailableError(OcrError):
    """The engine is missing, or does not read its sample; nothing may be recorded as "no text"."""

    def __init__(self, engine: str, reason: str) -> None:
        super().__init__(f"OCR engine {engine} is unavailable: {reason}")
        self.engine = engine
        self.reason = reason


class OcrTimeoutError(OcrError):
    """One reading took longer than its limit; the engine's process is gone."""

    def __init__(self, engine: str, timeout_s: float) -> None:
        super().__init__(f"OCR engine {engine} timed out after {timeout_s:g} s")
        self.engine = engine
        self.timeout_s = timeout_s


class Layout(StrEnum):
    """How the text lies in the picture."""

    BLOCK = "block"  #: One column of rows.
    LINE = "line"  #: One row.


@dataclass(frozen=True, slots=True, kw_only=True)
class OcrWord:
    """One word with its place in the picture that was read."""

    text: str
    confidence: float  #: 0 to 1.
    box_px: tuple[int, int, int, int]  #: Left, top, right, bottom.


@dataclass(frozen=True, slots=True, kw_only=True)
class OcrText:
    """What one call read; text, confidence and boxes come from the same call."""

    words: tuple[OcrWord, ...] = ()

    @property
    def text(self) -> str:
        """The words in reading order, joined by spaces."""
        return " ".join(word.text for word in self.words)

    @property
    def confidence(self) -> float:
        """Mean confidence of the words by their length, 0 to 1; 0 without words."""
        letters = sum(len(word.text) for word in self.words)
        return sum(word.confidence * len(word.text) for word in self.words) / letters if letters else 0.0


class OcrEngine(Protocol):
    """Reads dark text on a light ground."""

    @property
    def name(self) -> str:
        """The engine with its version and model, as stored beside what it read."""

    def read(self, gray: NDArray[np.uint8], *, layout: Layout) -> OcrText:
        """Return the words in ``gray``.

        Raises:
            OcrTimeoutError: the engine took too long.
            OcrUnavailableError: the engine went away.
        """


def make_engine(name: str) -> OcrEngine:
    """Return a new engine called ``name`` ("tesserocr" or "pytesseract"), not yet tested."""
    if name == "tesserocr":
        from cardpicker.stage_c.imaging.ocr_tesserocr import TesserocrEngine

        return TesserocrEngine()
    if name == "pytesseract":
        from cardpicker.stage_c.imaging.ocr_pytesseract import PytesseractEngine

        return PytesseractEngine()
    raise OcrUnavailableError(name, "no such engine; use tesserocr or pytesseract")


@cache
def tested_engine(name: str) -> OcrEngine:
    """Return this process's one engine called ``name``, after it has read a built-in sample.

    One native object per process is reused: making one per image leaks and costs more than reading.

    Raises:
        OcrUnavailableError: it is missing, or reads the sample wrongly.
    """
    engine = make_engine(name)
    try:
        words = engine.read(sample_image(), layout=Layout.LINE)
    except OcrTimeoutError as error:
        raise OcrUnavailableError(name, f"its self-test timed out ({error.timeout_s:g} s)") from error
    if "".join(words.text.split()) != "".join(SAMPLE_TEXT.split()):
        raise OcrUnavailableError(name, f"its self-test read {words.text!r} instead of {SAMPLE_TEXT!r}")
    return engine


def sample_image() -> NDArray[np.uint8]:
    """Return a rendered line that any sound model reads without a mistake."""
    picture = Image.new("L", (360, 72), 255)
    ImageDraw.Draw(picture).text((24, 12), SAMPLE_TEXT, fill=0, font=ImageFont.load_default(size=40))
    return np.asarray(picture, dtype=np.uint8)


class ActiveEngine:
    """Holds which engine this process reads with; set once by the worker's warm-up."""

    def __init__(self) -> None:
        self._name = ""

    def use(self, name: str) -> None:
        """Test the engine called ``name`` and read with it from now on."""
        tested_engine(name)
        self._name = name

    def get(self) -> OcrEngine:
        """Return the engine in use.

        Raises:
            OcrUnavailableError: no warm-up has chosen one.
        """
        if not self._name:
            raise OcrUnavailableError("(none)", "warm_up() has not been called in this process")
        return tested_engine(self._name)


ACTIVE = ActiveEngine()  # Extractors are pure functions of an image; the native engine is a process's own.


def join_rows(words: Sequence[OcrWord], spans: Sequence[tuple[int, int]]) -> list[list[OcrWord]]:
    """Sort ``words`` into the rows whose top and bottom pixels are ``spans``, each from left to right."""
    rows: list[list[OcrWord]] = [[] for _ in spans]
    for word in words:
        middle = (word.box_px[1] + word.box_px[3]) / 2
        nearest = min(range(len(spans)), key=lambda i: abs((spans[i][0] + spans[i][1]) / 2 - middle), default=None)
        if nearest is not None:
            rows[nearest].append(word)
    return [sorted(row, key=lambda word: word.box_px[0]) for row in rows]
