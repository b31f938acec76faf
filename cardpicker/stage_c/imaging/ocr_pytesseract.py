"""pytesseract: the system's tesseract binary, one short process per call.

pytesseract says which binary; the call itself goes through pipes, because pytesseract leaves temporary files behind a
killed process and does not reap a child that it timed out.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cardpicker.stage_c.imaging.ocr import Layout, OcrText, OcrTimeoutError, OcrUnavailableError, OcrWord

CALL_TIMEOUT_S = 15.0
_MODES = {Layout.BLOCK: "6", Layout.LINE: "7"}
_TSV_COLUMNS = 12


class PytesseractEngine:
    """The binary that pytesseract is configured with."""

    def __init__(self, timeout_s: float = CALL_TIMEOUT_S) -> None:
        try:
            from pytesseract import pytesseract
        except ImportError as error:
            raise OcrUnavailableError("pytesseract", "the package pytesseract is not installed") from error
        command = shutil.which(pytesseract.tesseract_cmd)
        if command is None:
            raise OcrUnavailableError(
                "pytesseract",
                f"no program {pytesseract.tesseract_cmd!r} on PATH; install tesseract-ocr or use tesserocr",
            )
        self._command = command
        self._timeout_s = timeout_s
        first = self._run(["--version"], b"").splitlines()
        self._name = f"pytesseract {first[0].strip() if first else 'unknown'} eng"

    @property
    def name(self) -> str:
        """The binary's version and model, as stored beside what was read."""
        return self._name

    def read(self, gray: NDArray[np.uint8], *, layout: Layout) -> OcrText:
        """Return the words in ``gray`` from one call that gives text, confidence and boxes."""
        png = io.BytesIO()
        Image.fromarray(gray).save(png, "PNG", compress_level=1, dpi=(300, 300))
        options = ["stdin", "stdout", "-l", "eng", "--psm", _MODES[layout], "-c", "tessedit_enable_doc_dict=0", "tsv"]
        return parse_tsv(self._run(options, png.getvalue()))

    def _run(self, arguments: list[str], stdin: bytes) -> str:
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
        with subprocess.Popen(
            [self._command, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        ) as child:
            try:
                out, err = child.communicate(stdin, timeout=self._timeout_s)
            except subprocess.TimeoutExpired as error:
                raise OcrTimeoutError("pytesseract", self._timeout_s) from error
            finally:
                _end_group(child)
        if child.returncode != 0:
            lines = err.decode("utf-8", "replace").strip().splitlines()
            reason = lines[-1] if lines else "no message"
            raise OcrUnavailableError("pytesseract", f"{self._command} exited with {child.returncode}: {reason}")
        return out.decode("utf-8", "replace")


def _end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill whatever the call started and is still there; the caller's `with` reaps it."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def parse_tsv(tsv: str) -> OcrText:
    """Return the words of tesseract's TSV; a quote is a letter there like any other."""
    words = []
    for line in tsv.split("\n")[1:]:
        cells = line.rstrip("\r").split("\t", _TSV_COLUMNS - 1)
        if len(cells) < _TSV_COLUMNS or cells[0] != "5" or not cells[11].strip():
            continue
        left, top, width, height = (int(cell) for cell in cells[6:10])
        words.append(
            OcrWord(
                text=cells[11].strip(),
                confidence=max(0.0, float(cells[10])) / 100,
                box_px=(left, top, left + width, top + height),
            )
        )
    return OcrText(words=tuple(words))
