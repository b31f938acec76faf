"""The sweep over ways to recognize, and how it tells two engines' readings apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cardpicker.stage_c.imaging.ocr import OcrWord
from scripts.ops.ocr_sweep.compare import kind_of, paired

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES = PROJECT / "sample_catalogue"


def test_each_way_is_scored_against_the_truth(tmp_path: Path) -> None:
    """The product's way comes first; a way that cannot read the line is seen to read less."""
    truth = tmp_path / "truth.csv"
    truth.write_text(
        "file,name,set,collector_number\n"
        "murder-mkm.jpg,Murder,mkm,95\n"
        "ajanis-pridemate-fdn.jpg,Ajani's Pridemate,fdn,999\n"
    )
    command = [sys.executable, "scripts/ops/sweep_ocr.py", str(truth), "--images", str(SAMPLES / "images"), "--json"]

    done = subprocess.run(
        [*command, "--only", "dictionaries|capitals 20"], cwd=PROJECT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["ways"]
    assert list(found) == ["as the product", "dictionaries off", "capitals 20 px"]
    assert found["as the product"]["number"] == {"right": 1, "wrong": 1, "blank": 0}
    assert found["as the product"]["set"]["right"] == 2
    assert found["as the product"]["pairs_right"] == 1
    assert found["as the product"]["cpu_ms_mean"] > 0


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("123/287 R", "123/287 R", "the same"),
        ("MKM*EN", "MKM«EN", "bullets and points"),
        ("XLN 012", "XLN O12", "letters that look alike"),
        ("XLN 012", "XLN 017", "other letters"),
        ("XLN", "", "only the first saw a word"),
        ("", "XLN", "only the second saw a word"),
    ],
)
def test_a_difference_is_told_by_the_least_that_explains_it(first: str, second: str, kind: str) -> None:
    """What changes no letter is not counted as another reading."""
    assert kind_of(first, second) == kind


def test_words_are_paired_by_their_place() -> None:
    """A word that one engine alone saw shifts no other."""
    left, middle, right = (OcrWord(text=text, confidence=0.9, box_px=box) for text, box in (
        ("XLN", (0, 0, 40, 20)), ("*", (50, 5, 56, 11)), ("EN", (70, 0, 95, 20)),
    ))  # fmt: skip
    moved = OcrWord(text="EN", confidence=0.8, box_px=(71, 0, 96, 21))

    assert paired([left, middle, right], [left, moved]) == [(left, left), (middle, None), (right, moved)]
    assert paired([left], [left, right]) == [(left, left), (None, right)]
