"""A tesserocr engine that is set as a way says, behind the product's own seam."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import tesserocr
from numpy.typing import NDArray

from cardpicker.stage_c.extractors import bottom_text
from cardpicker.stage_c.imaging import ocr, textrows
from cardpicker.stage_c.imaging.ocr import Layout, OcrEngine, OcrText, OcrWord
from scripts.ops.ocr_sweep.ways import Way

#: What the product sets itself; a way may set them otherwise.
OWN_VARIABLES = {"debug_file": "/dev/null", "tessedit_enable_doc_dict": "0", "tessedit_do_invert": "0"}


class SweptEngine:
    """One native API object for a way."""

    def __init__(self, way: Way, folder: Path) -> None:
        self._api = tesserocr.PyTessBaseAPI(
            path=str(folder),
            lang="eng",
            psm=getattr(tesserocr.PSM, way.block_psm),
            oem=getattr(tesserocr.OEM, way.oem),
            variables=dict(way.start),
        )
        for name, value in (OWN_VARIABLES | dict(way.variables)).items():
            if not self._api.SetVariable(name, value):
                raise ValueError(f"{way.name}: the engine knows no {name}")
        self._modes = {
            Layout.BLOCK: getattr(tesserocr.PSM, way.block_psm),
            Layout.LINE: getattr(tesserocr.PSM, way.line_psm),
        }
        self.name = f"tesserocr, {way.name}"

    def read(self, gray: NDArray[np.uint8], *, layout: Layout) -> OcrText:
        """Return the words in ``gray``, as the product's engine does."""
        height, width = gray.shape
        self._api.SetPageSegMode(self._modes[layout])
        self._api.SetImageBytes(np.ascontiguousarray(gray).tobytes(), width, height, 1, width)
        self._api.SetSourceResolution(300)
        level = tesserocr.RIL.WORD
        words = []
        if self._api.Recognize():
            for item in tesserocr.iterate_level(self._api.GetIterator(), level):
                box = item.BoundingBox(level)
                text = (item.GetUTF8Text(level) if box is not None else "").strip()
                if text:
                    words.append(OcrWord(text=text, confidence=item.Confidence(level) / 100, box_px=box))
        self._api.Clear()
        self._api.ClearAdaptiveClassifier()
        return OcrText(words=tuple(words))

    def end(self) -> None:
        """Give the native memory back."""
        self._api.End()


class Recorder:
    """Keeps what an engine is shown and what it reads."""

    def __init__(self, engine: OcrEngine) -> None:
        self._engine = engine
        self.shown: list[tuple[NDArray[np.uint8], Layout, OcrText]] = []

    @property
    def name(self) -> str:
        """The engine's own."""
        return self._engine.name

    def read(self, gray: NDArray[np.uint8], *, layout: Layout) -> OcrText:
        """Read, and remember."""
        read = self._engine.read(gray, layout=layout)
        self.shown.append((gray, layout, read))
        return read


@contextlib.contextmanager
def reading_with(engine: OcrEngine, way: Way | None = None) -> Iterator[None]:
    """Let the product read with ``engine`` for the length of the block, and show it print as ``way`` says."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(ocr.ActiveEngine, "get", return_value=engine))
        if way is not None and way.height_px is not None:
            stack.enter_context(mock.patch.object(textrows, "TEXT_HEIGHT_PX", way.height_px))
        if way is not None and way.condensed is not None:
            stack.enter_context(mock.patch.object(bottom_text, "CONDENSED_WORDS", way.condensed))
        yield
