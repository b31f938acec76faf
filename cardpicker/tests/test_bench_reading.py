"""The measure of reading, run over the sample catalog as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from PIL import Image

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES = PROJECT / "sample_catalogue"


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROJECT / "scripts/ops/bench_reading.py", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_each_field_is_counted_and_what_failed_is_shown(tmp_path: Path) -> None:
    """Verdicts add up to the printed fields, no number is wrong, and every failure has its crop."""
    truth = tmp_path / "truth.csv"
    truth.write_text(
        "file,name,set,collector_number,language,artist,frame,kind\n"
        "abzan-charm-ktk.webp,Abzan Charm,ktk,161,en,Mathias Kollros,2015/normal,proxy-render\n"
        "ajanis-pridemate-fdn.jpg,Ajani's Pridemate,fdn,999,en,,2015/2023-line,proxy-render\n"
        "not-there.jpg,Nothing,abc,1,en,,2015/normal,scan\n"
    )
    sheet = tmp_path / "sheets" / "failures.png"

    done = bench(truth, "--images", SAMPLES / "images", "--sheet", sheet, "--json")

    assert done.returncode == 0, done.stderr
    assert "not-there.jpg" in done.stderr
    found = json.loads(done.stdout)
    assert found["groups"]["all"]["number"] == {"right": 1, "wrong": 1, "blank": 0}
    assert found["groups"]["kind proxy-render"]["set"] == {"right": 2, "wrong": 0, "blank": 0}
    assert found["failures"]["ajanis-pridemate-fdn.jpg"]["number"] == "wrong: 135 / 999"
    assert found["targets"]["pairs_right"] == {"value": 0.5, "target": 0.85, "rows": 2, "met": False}
    assert found["targets"]["clear_pairs_right"]["rows"] == 2
    assert found["targets"]["pairs_wrong"] == {"value": 1, "target": 1, "rows": 2, "met": True}
    with Image.open(sheet) as picture:
        assert picture.height >= 150 * len(found["failures"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Wrong use says what to give."""
    done = bench(tmp_path / "none.csv")

    assert done.returncode == 1
    assert "none.csv" in done.stderr
    assert "Traceback" not in done.stderr
