"""Damaged copies of labeled images: repeatable, of the form that the scores read, and scored as the product would."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from cardpicker.operations.scoring import read_truth
from cardpicker.sources.cards_csv import read_given_names
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.tests.card_pictures import card
from scripts.ops.damaged import effects
from scripts.ops.damaged.folder import upright
from scripts.ops.damaged.grounds import border_color
from scripts.ops.damaged.kinds import KINDS, UNCHANGED, scaled_to
from scripts.ops.damaged.scoring import number_verdict

PROJECT = Path(__file__).resolve().parents[2]
SAMPLES = PROJECT / "sample_catalogue"
#: Kinds that only the file's compression makes, or nothing.
SAME_PIXELS = {UNCHANGED, "jpeg-40", "jpeg-25"}
DRAWN = {"noisy", "inset-table", "off-center", "perspective", "moire"}
TRUTH = (
    "# max_wrong=0\n"
    "file,expect,expect_set,expect_cn,kind,frame,width,note\n"
    "murder-mkm.jpg,printing,mkm,95,scan,2015,1,as printed\n"
    "ajanis-pridemate-fdn.jpg,printing,war,4,photo,2015,1,\n"
    "shock-custom.jpg,none,,,custom-render,2015,1,\n"
)


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, PROJECT / "scripts/ops" / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def damage(truth: Path, out: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return run("damage_cases.py", truth, out, "--images", SAMPLES / "images", *arguments)


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three of the sample catalog's cards, one of them with another card's line expected."""
    path = tmp_path_factory.mktemp("truth") / "truth.csv"
    path.write_text(TRUTH)
    return path


@pytest.fixture(scope="module")
def damaged(truth: Path) -> Path:
    """Copies of them."""
    out = truth.parent / "damaged"
    done = damage(truth, out, "--kind", UNCHANGED, "scaled-80", "jpeg-40", "noisy", "--scaled-to", "499")
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.parametrize("kind", [*KINDS])
def test_a_kind_of_damage_repeats_and_leaves_the_original_alone(kind: str) -> None:
    """Equal pictures, files and seeds give equal pixels, what is drawn at random changes with the seed."""
    picture = card(px_per_mm=6)
    before = picture.tobytes()

    first, second, other = (KINDS[kind].apply(picture, "a.jpg", seed) for seed in (1, 1, 2))

    assert picture.tobytes() == before
    assert (first.mode, first.size, first.tobytes()) == ("RGB", second.size, second.tobytes())
    assert (first.tobytes() == before) == (kind in SAME_PIXELS)
    if kind in DRAWN:
        assert first.tobytes() != other.tobytes()


def test_sizes_follow_what_is_done_to_the_card() -> None:
    """Scaled, turned, set in, stretched and seen from the side, each by as much as it says."""
    picture, draw = card(px_per_mm=6), np.random.default_rng(1)

    sizes = {name: KINDS[name].apply(picture, "a.jpg", 1).size for name in KINDS}

    assert picture.size == (378, 528)
    assert sizes["scaled-50"] == (189, 264)
    assert sizes["rotated-1.5"][0] > sizes["rotated-0.8"][0] > 378
    assert sizes["inset-black"] == sizes["inset-table"] == (462, 612)
    assert sizes["stretched"] in ((389, 528), (378, 544))
    assert sizes["perspective"] == (378, 528)
    assert scaled_to(400).apply(picture, "a.jpg", 1).size[1] == 400
    assert effects.trimmed(effects.plain_bleed(picture, draw), draw, too_far_mm=1).size == picture.size
    assert effects.trimmed(picture, draw, too_far_mm=1).size == (366, 516)


def test_grounds_have_the_border_s_color_and_perspective_keeps_the_card_whole() -> None:
    """What is laid around a card is its border's color; its corners only move inward."""
    picture = Image.new("RGB", (300, 400), (200, 40, 40))
    picture.paste((10, 20, 30), (0, 0, 4, 400))
    picture.paste((10, 20, 30), (296, 0, 300, 400))
    picture.paste((10, 20, 30), (0, 0, 300, 4))
    picture.paste((10, 20, 30), (0, 396, 300, 400))

    def red(image: Image.Image) -> Any:
        return np.argwhere(np.asarray(image)[..., 0] > 150)

    seen = effects.perspective(picture, np.random.default_rng(3), strength=0.05)

    assert border_color(picture) == (10, 20, 30)
    assert effects.rotated(picture, np.random.default_rng(1), degrees=1.5).getpixel((0, 0)) == (10, 20, 30)
    assert len(red(picture)) * 0.85 < len(red(seen)) < len(red(picture))
    assert red(seen).min() >= 4 and red(seen)[:, 0].max() <= 396


def test_a_picture_is_taken_as_it_is_displayed() -> None:
    """Transparency becomes white, a camera's turn is undone."""
    picture = Image.new("RGBA", (30, 20), (0, 0, 0, 0))
    turned = Image.new("RGB", (30, 20))
    turned.getexif()[0x0112] = 6

    assert upright(picture).getpixel((0, 0)) == (255, 255, 255)
    assert upright(turned).size == (20, 30)


def test_the_copies_keep_the_truth_and_have_names(damaged: Path) -> None:
    """Each row is as it was but for file, size and kind; whoever reads such folders accepts it."""
    with (damaged / "truth.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    copy = next(row for row in rows if row["file"] == "scaled-80--murder-mkm.jpg")
    given = read_given_names(damaged / "images")

    assert len(read_truth(damaged / "truth.csv")) == len(rows) == 3 * 5
    assert {row["file"] for row in rows} | {"cards.csv"} == {path.name for path in (damaged / "images").iterdir()}
    assert (copy["expect"], copy["expect_set"], copy["expect_cn"]) == ("printing", "mkm", "95")
    assert (copy["kind"], copy["original_kind"], copy["frame"]) == ("scaled-80", "scan", "2015")
    assert (copy["name"], copy["note"]) == ("Murder", "as printed")
    assert given.take("noisy--ajanis-pridemate-fdn.jpg") == "Ajani's Pridemate" and not given.problems
    image = decode((damaged / "images" / copy["file"]).read_bytes())
    assert isinstance(image, NormalizedImage) and str(image.source_width_px) == copy["width"]
    original = (SAMPLES / "images" / "murder-mkm.jpg").read_bytes()
    assert (damaged / "images" / "as-is--murder-mkm.jpg").read_bytes() == original


def test_the_same_call_gives_the_same_bytes(truth: Path, damaged: Path, tmp_path: Path) -> None:
    """Another seed gives others."""
    same, other = tmp_path / "same", tmp_path / "deep" / "other"

    assert damage(truth, same, "--kind", "noisy", "--processes", "1").returncode == 0
    assert damage(truth, other, "--kind", "noisy", "--seed", "2").returncode == 0

    file = "images/noisy--murder-mkm.jpg"
    assert (same / file).read_bytes() == (damaged / file).read_bytes() != (other / file).read_bytes()


def test_a_picture_is_never_enlarged_and_a_broken_one_is_left_out(truth: Path, tmp_path: Path) -> None:
    """A row without a copy is not in the new truth."""
    images = tmp_path / "images"
    images.mkdir()
    (images / "murder-mkm.jpg").write_bytes((SAMPLES / "images" / "murder-mkm.jpg").read_bytes())
    (images / "shock-custom.jpg").write_bytes(b"no picture")

    done = run("damage_cases.py", truth, tmp_path / "out", "--images", images, "--scaled-to", "400", "9000")

    assert done.returncode == 0, done.stderr
    assert [row.file for row in read_truth(tmp_path / "out" / "truth.csv")] == ["longest-400px--murder-mkm.jpg"]
    assert done.stderr.count("left out: ") == 2 and "shock-custom.jpg" in done.stderr


def _no_truth(folder: Path) -> list[str | Path]:
    return [folder / "none.csv", folder / "out"]


def _bad_truth(folder: Path) -> list[str | Path]:
    (folder / "truth.csv").write_text("file\nmurder-mkm.jpg\n")
    return [folder / "truth.csv", folder / "out"]


def _no_images(folder: Path) -> list[str | Path]:
    (folder / "truth.csv").write_text(TRUTH)
    return [folder / "truth.csv", folder / "out", "--images", folder / "nowhere"]


def _nothing_to_copy(folder: Path) -> list[str | Path]:
    (folder / "truth.csv").write_text(TRUTH)
    return [folder / "truth.csv", folder / "out", "--scaled-to", "9000"]


def _out_exists(folder: Path) -> list[str | Path]:
    (folder / "truth.csv").write_text(TRUTH)
    (folder / "kept").mkdir()
    return [folder / "truth.csv", folder / "kept"]


@pytest.mark.parametrize(
    ("wrong_use", "said"),
    [
        (_no_truth, "none.csv"),
        (_bad_truth, "no column expect"),
        (_no_images, "nowhere: give --images"),
        (_nothing_to_copy, "no image of the truth file could be copied"),
        (_out_exists, "kept is there already"),
    ],
)
def test_wrong_use_is_told_in_a_line(wrong_use: Callable[[Path], list[str | Path]], said: str, tmp_path: Path) -> None:
    """Exit code 1, no traceback, and nothing half done is left."""
    done = run("damage_cases.py", "--images", SAMPLES / "images", *wrong_use(tmp_path))

    lines = [line for line in done.stderr.splitlines() if not line.startswith("left out: ")]
    assert done.returncode == 1
    assert len(lines) == 1 and said in lines[0]
    assert {path.name for path in tmp_path.iterdir()} <= {"truth.csv", "kept"}


def test_copies_are_scored_by_kind_of_damage(damaged: Path) -> None:
    """Right where the expected printing is voted, wrong and named where another is, silent where none can be read."""
    done, any_size = (run("score_damaged.py", damaged, "--json", *more) for more in ([], ["--any-size"]))

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    small, large = found["by_kind"]["longest-499px"], found["by_kind"][UNCHANGED]
    assert (large["right"], large["wrong"], large["abstained"]) == (1, 1, 1)
    assert large["numbers"] == {"right": 1, "wrong": 1, "blank": 0, "invented": 0}
    assert (small["right"], small["abstained"], small["numbers"]["blank"]) == (0, 3, 2)
    assert json.loads(any_size.stdout)["by_kind"]["longest-499px"]["numbers"]["right"] == 1
    assert "as-is--ajanis-pridemate-fdn.jpg" in [wrong["file"] for wrong in found["wrong"]]
    assert found["by_calculator"]["stage-d-join-key-v1"]["wrong"] == found["overall"]["wrong"]


def test_the_score_names_each_wrong_vote_and_what_was_read(damaged: Path) -> None:
    """The table for people."""
    done = run("score_damaged.py", damaged, "--kind", UNCHANGED)

    assert done.returncode == 0, done.stderr
    assert "wrong votes: 1" in done.stdout and "expected war 4; voted fdn 135" in done.stdout
    assert "wrong numbers: 1" in done.stdout and "read number 135, set fdn" in done.stdout


@pytest.mark.parametrize(
    ("row", "read", "verdict"),
    [
        ({"collector_number": "095", "expect_cn": "95"}, "95", "right"),
        ({"expect_cn": "95"}, "96", "wrong"),
        ({"expect_cn": "95"}, None, "blank"),
        ({"collector_number": "", "expect_cn": ""}, "95", "invented"),
        ({"collector_number": "", "expect_cn": ""}, None, None),
        ({"expect_cn": ""}, "95", None),
    ],
)
def test_a_number_counts_against_what_is_printed(row: dict[str, str], read: str | None, verdict: str | None) -> None:
    """A row that does not tell what is printed counts nothing."""
    assert number_verdict(row, {"collector_line": {"number": read}}) == verdict


@pytest.mark.parametrize(
    ("arguments", "said"), [(["nowhere"], "there is no nowhere"), (["--kind", "unheard-of"], "has no row of kind")]
)
def test_a_score_of_nothing_is_wrong_use(arguments: list[str], said: str, damaged: Path) -> None:
    """A folder that is not there, and a kind that no row has."""
    done = run("score_damaged.py", *([damaged, *arguments] if "--kind" in arguments else arguments))

    assert done.returncode == 1
    assert said in done.stderr and len(done.stderr.splitlines()) == 1


def test_the_measure_of_reading_groups_by_damage(damaged: Path) -> None:
    """What was a photograph stays one for the share of clear pictures."""
    sheet = damaged.parent / "sheet.png"

    done = run("bench_reading.py", damaged / "truth.csv", "--sheet", sheet, "--json")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["groups"]["kind scaled-80"]["number"] == {"right": 1, "wrong": 1, "blank": 0}
    assert found["targets"]["pairs_right"]["rows"] == 2 * 5
    assert found["targets"]["clear_pairs_right"]["rows"] < 5 + 1
