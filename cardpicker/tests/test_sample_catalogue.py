"""The sample catalog: that its script still makes it, and that its truth is true."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageStat

ROOT = Path(__file__).resolve().parents[2]
CATALOGUE = ROOT / "sample_catalogue"
IMAGES = CATALOGUE / "images"
TRUNCATED = "bloodbraid-elf-pca-cut-off.jpg"
EXIF_ORIENTATION = 0x0112


def render(folder: Path) -> Path:
    """Render the catalog into a folder as an operator would."""
    script = ROOT / "scripts" / "ops" / "render_sample_catalogue.py"
    command = [sys.executable, str(script), "--output", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh rendering of the whole catalog."""
    return render(tmp_path_factory.mktemp("rendered"))


def rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def image_files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every image of a folder by file name."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix != ".csv"}


def printings() -> dict[tuple[str, str], dict[str, object]]:
    """Return the catalog's printings by set and number."""
    lines = (CATALOGUE / "printings.jsonl").read_text(encoding="utf-8").splitlines()
    return {(card["set"], card["collector_number"]): card for card in map(json.loads, lines)}


def test_rendering_twice_gives_the_same_bytes(rendered: Path, tmp_path: Path) -> None:
    """Nothing in a rendering depends on chance, time or the hash seed."""
    again = render(tmp_path)

    assert image_files(again / "images") == image_files(rendered / "images")


def test_committed_tables_are_what_the_script_writes(rendered: Path) -> None:
    """Names and truth are rendered, never edited by hand."""
    for table in ("images/cards.csv", "truth.csv"):
        assert (CATALOGUE / table).read_text(encoding="utf-8") == (rendered / table).read_text(encoding="utf-8")


def test_committed_images_show_what_the_script_draws(rendered: Path) -> None:
    """Each committed image has the script's format and size, and its pixels but for another codec's rounding."""
    assert image_files(rendered / "images").keys() == image_files(IMAGES).keys()
    for name in image_files(IMAGES):
        with Image.open(IMAGES / name) as committed, Image.open(rendered / "images" / name) as fresh:
            assert (committed.format, committed.mode, committed.size) == (fresh.format, fresh.mode, fresh.size), name
            if name != TRUNCATED:
                difference = ImageChops.difference(committed.convert("RGB"), fresh.convert("RGB"))
                assert max(ImageStat.Stat(difference).mean) < 2, name


def test_every_image_has_one_name_and_one_truth() -> None:
    """Both tables list every image once, and nothing else."""
    files = list(image_files(IMAGES))

    assert [row["file"] for row in rows(IMAGES / "cards.csv")] == files
    assert [row["file"] for row in rows(CATALOGUE / "truth.csv")] == files
    assert all(row["name"].strip() for row in rows(IMAGES / "cards.csv"))


def test_truth_names_printings_of_the_card() -> None:
    """An expected printing exists under the card's name or one of its faces; other rows name no printing."""
    names = {row["file"]: row["name"] for row in rows(IMAGES / "cards.csv")}
    known = printings()
    for row in rows(CATALOGUE / "truth.csv"):
        assert row["expect"] in {"printing", "none", "abstain"}
        if row["expect"] != "printing":
            assert (row["expect_set"], row["expect_cn"]) == ("", ""), row
            continue
        full_name = str(known[row["expect_set"], row["expect_cn"]]["name"])
        spellings = {plain(name) for name in (full_name, *full_name.split(" // "))}
        assert plain(names[row["file"]]) in spellings, row


def plain(name: str) -> str:
    """Return a name's letters and digits in lower case."""
    return "".join(filter(str.isalnum, name.lower()))


def test_custom_cards_print_what_no_printing_has() -> None:
    """Neither the invented set nor the invented number of a real set is in the printings."""
    assert not any(set_code == "zqx" for set_code, _ in printings())
    assert ("m19", "412") not in printings()


def test_printings_have_distinct_ids_and_offer_rivals() -> None:
    """Ids are unique, and nearly every name leaves more than one printing to choose from."""
    cards = printings().values()
    rivals = Counter(card["name"] for card in cards)

    assert len({card["id"] for card in cards}) == len(cards)
    assert sum(count > 1 for count in rivals.values()) > len(rivals) * 0.9


def test_same_name_is_expected_in_different_sets() -> None:
    """Some names occur twice with different answers, so that a name alone identifies nothing."""
    names = {row["file"]: plain(row["name"]) for row in rows(IMAGES / "cards.csv")}
    answers = defaultdict(set)
    for row in rows(CATALOGUE / "truth.csv"):
        if row["expect"] == "printing":
            answers[names[row["file"]]].add(row["expect_set"])

    assert sorted(name for name, sets in answers.items() if len(sets) > 1) == [
        "ajanispridemate",
        "duress",
        "opt",
        "revitalize",
    ]


def test_two_files_are_byte_identical() -> None:
    """One pair of files, and only one, shares its bytes."""
    copies = Counter(image_files(IMAGES).values())

    assert sorted(copies.values())[-2:] == [1, 2]


def test_only_the_truncated_file_is_truncated() -> None:
    """Every image decodes to its last row except the one that was cut."""
    broken = []
    for name in image_files(IMAGES):
        try:
            with Image.open(IMAGES / name) as image:
                image.load()
        except OSError:
            broken.append(name)

    assert broken == [TRUNCATED]


def test_formats_and_orientation_vary() -> None:
    """One PNG with transparent corners, one WebP and one sideways JPEG stand among the JPEGs."""
    formats: Counter[str | None] = Counter()
    sideways = []
    for name in image_files(IMAGES):
        with Image.open(IMAGES / name) as image:
            formats[image.format] += 1
            if image.getexif().get(EXIF_ORIENTATION, 1) != 1:
                sideways.append((name, image.width > image.height))

    assert (formats["PNG"], formats["WEBP"], formats.total()) == (1, 1, formats["JPEG"] + 2)
    assert sideways == [("thraben-inspector-soi-sideways.jpg", True)]


def test_catalogue_is_small_and_its_fonts_are_licensed() -> None:
    """The images stay under 4 MB, and every font family comes with its license."""
    assert sum(map(len, image_files(IMAGES).values())) < 4_000_000
    for font in (CATALOGUE / "fonts").glob("*.ttf"):
        family = font.stem.split("-")[0]
        assert "SIL Open Font License" in (font.parent / f"OFL-{family}.txt").read_text(encoding="utf-8")
