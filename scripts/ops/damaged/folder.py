"""A truth file's images into a folder of damaged copies, with a truth file and names of the same form.

Every row stays as it is but for the file, its size and its kind, which becomes the damage's: what an image shows does not
change. Where a damage makes the small print unreadable, abstaining is what is wanted, and a wrong vote still is none.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from PIL import Image, ImageOps

from cardpicker.operations.scoring import read_truth, without_head
from cardpicker.sources.cards_csv import FILE_NAME, read_given_names
from scripts.ops.damaged.kinds import FINE_QUALITY, UNCHANGED, Damage

TRUTH, IMAGES = "truth.csv", "images"
Row = dict[str, str]


class FolderError(Exception):
    """The copies cannot be made; the message is one line and says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """What was made of one image."""

    rows: Sequence[Row] = ()
    left_out: str = ""  #: Why nothing was.


def read_rows(truth: Path, images: Path) -> list[Row]:
    """Return the rows of a truth file with the name of each card: the row's, the folder's, or else the file's.

    Raises:
        ScoringError: the file cannot be used.
        ListingError: the names beside the images cannot be used.
    """
    read_truth(truth)
    given = read_given_names(images)
    with truth.open(encoding="utf-8-sig", newline="") as stream:
        rows = [_cleaned(record) for record in csv.DictReader(without_head(stream)[1])]
    for row in rows:
        row["name"] = row.get("name") or given.take(row["file"]) or PurePosixPath(row["file"]).stem
    return rows


def _cleaned(record: Mapping[object, object]) -> Row:
    """Return a record as the product reads it: a cell that is missing is empty, one too many is nobody's."""
    return {name: str(text or "").strip() for name, text in record.items() if isinstance(name, str)}


def write_copies(
    images: Path, rows: Sequence[Row], damages: Sequence[Damage], out: Path, *, seed: int, processes: int
) -> list[str]:
    """Write the copies, their truth and their names into a new folder; returns what was left out and why.

    Raises:
        FolderError: the folder is there already, or no copy could be made.
    """
    if out.exists():
        raise FolderError(f"{out} is there already: name a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as unfinished:
        made = _write_folder(images, rows, damages, Path(unfinished) / out.name, seed=seed, processes=processes)
        (Path(unfinished) / out.name).rename(out)
    return [copies.left_out for copies in made if copies.left_out]


def _write_folder(
    images: Path, rows: Sequence[Row], damages: Sequence[Damage], out: Path, *, seed: int, processes: int
) -> list[Copies]:
    (out / IMAGES).mkdir(parents=True)
    make = partial(_copies_of, images, tuple(damages), out / IMAGES, seed)
    with ProcessPoolExecutor(processes) as pool:
        made = list(pool.map(make, _with_new_names(rows)))
    written = [row for copies in made for row in copies.rows]
    if not written:
        raise FolderError(f"no image of the truth file could be copied from {images}: give --images, or larger ones")
    _write_csv(out / TRUTH, written)
    _write_csv(out / IMAGES / FILE_NAME, [{"file": row["file"], "name": row["name"]} for row in written])
    return made


def upright(image: Image.Image) -> Image.Image:
    """Return a picture as it is displayed: turned as its camera says, transparency on white, RGB."""
    image = ImageOps.exif_transpose(image)
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return image.convert("RGB")


def _with_new_names(rows: Iterable[Row]) -> Iterator[tuple[Row, str]]:
    """Yield each row with what its copies are called after their damage: a name that no other row's copies have."""
    taken: set[str] = set()
    for row in rows:
        name = PurePosixPath(row["file"]).stem
        name = name if name not in taken else PurePosixPath(row["file"]).as_posix().replace("/", "-")
        taken.add(name)
        yield row, name


def _copies_of(images: Path, damages: Sequence[Damage], out: Path, seed: int, named: tuple[Row, str]) -> Copies:
    row, name = named
    path = images / row["file"]
    try:
        with Image.open(path) as opened:
            image = upright(opened)
        original = path.read_bytes()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        return Copies(left_out=f"{path}: {error}")
    rows = []
    for damage in damages:
        if damage.longest_px is not None and max(image.size) < damage.longest_px:
            continue
        if damage.name == UNCHANGED:
            copy, data, suffix = image, original, path.suffix
        else:
            copy = damage.apply(image, row["file"], seed)
            data, suffix = _encoded(copy, damage.quality), ".jpg"
        file = f"{damage.name}--{name}{suffix}"
        (out / file).write_bytes(data)
        rows.append(_row_of_copy(row, file, damage.name, copy.size))
    return Copies(rows=rows)


def _row_of_copy(row: Mapping[str, str], file: str, kind: str, size: tuple[int, int]) -> Row:
    sizes = {"width": str(size[0]), "height": str(size[1])}
    return {
        **row,
        **{column: value for column, value in sizes.items() if column in row},
        "file": file,
        "kind": kind,
        "original_kind": row.get("kind", ""),
    }


def _encoded(image: Image.Image, quality: int) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality, subsampling=0 if quality >= FINE_QUALITY else 2)
    return out.getvalue()


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
