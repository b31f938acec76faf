"""The measure of what a card costs, run over a few images of the sample catalog as a person runs it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from scripts.ops.stage_c_bench.pictures import vary

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES = PROJECT / "sample_catalogue" / "images"


def bench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROJECT / "scripts/ops/bench_stage_c.py", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=170, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two images and the names of their cards."""
    for name in ("opt-xln.png", "murder-mkm.jpg", "cards.csv"):
        shutil.copy(SAMPLES / name, tmp_path)
    return tmp_path


@pytest.mark.timeout(240)
def test_every_stage_is_measured_on_the_same_images(folder: Path) -> None:
    """Each card goes through each stage, every copy is read and none is transferred, and the memory has its marks."""
    done = bench(folder, "--cards", "8", "--flat", "12", "--json")

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    stages = told["stages"]
    assert list(stages) == ["floor", "compute", "bare loops", "conveyor", "dispatch", "flat run"]
    assert {name: stages[name]["cards"] for name in stages} == {
        "floor": 4, "compute": 4, "bare loops": 8, "conveyor": 8, "dispatch": 8, "flat run": 12,
    }  # fmt: skip
    assert all(stages[name]["refused"] == 0 for name in stages)
    assert told["outcomes"] == {"stored": 12}
    assert all(0 < stages[name]["cpu_s_median"] <= stages[name]["cpu_s_p90"] for name in list(stages)[:4])
    assert 1 <= stages["dispatch"]["calls_median"] <= stages["dispatch"]["calls_max"]
    assert all(stages["dispatch"][f"{role}_cpu_ms"] > 0 for role in ("parent", "compute", "database", "server"))
    assert told["ratios"]["dispatch_to_conveyor"] > 0
    assert {"tree_mb_at_6", "tree_mb_at_12", "growth", "peak_process_mb"} <= set().union(*told["memory_mb"].values())
    assert told["memory_mb"]["flat run"]["peak_tree_mb"] > told["memory_mb"]["flat run"]["peak_process_mb"] > 0


def test_a_varied_picture_is_another_file_of_the_same_pixels() -> None:
    """Equal bytes would be read once and copied."""
    for name in ("opt-xln.png", "murder-mkm.jpg", "abzan-charm-ktk.webp"):
        body = (SAMPLES / name).read_bytes()
        first, second = (decode(vary(body, serial)) for serial in (1, 2))

        assert vary(body, 1) != vary(body, 2)
        assert isinstance(first, NormalizedImage) and isinstance(second, NormalizedImage)
        assert (first.rgb == second.rgb).all()


def test_a_folder_without_images_is_named(tmp_path: Path) -> None:
    """Wrong use says what to give."""
    done = bench(tmp_path)

    assert done.returncode == 1
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr
