"""``cards.csv`` of a folder: names for files whose own names say too little.

Columns ``file`` (relative to the folder, with forward slashes) and ``name``; others are ignored. A bad row is named by
line and its file falls back to its own name. A file that cannot be read as a whole is an error instead: without it
every card of the folder would be renamed.
"""

from __future__ import annotations

import csv
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cardpicker.sources.errors import ListingError
from cardpicker.sources.kinds import ListingProblem

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

FILE_NAME = "cards.csv"


@dataclass(slots=True, kw_only=True)
class GivenNames:
    """Names by file; a name is taken once, so that what is left at the end named no file."""

    problems: list[ListingProblem] = field(default_factory=list)
    names: dict[str, tuple[int, str]] = field(default_factory=dict)

    def take(self, identifier: str) -> str | None:
        """Return the name given to a file, if any."""
        _, name = self.names.pop(unicodedata.normalize("NFC", identifier), (0, None))
        return name

    def leftovers(self) -> Iterator[ListingProblem]:
        """Name the rows that no image file was found for."""
        for file, (line, _) in self.names.items():
            yield _problem(line, f"no image file {file[:200]!r} in the folder")


def read_given_names(folder: Path) -> GivenNames:
    """Read the folder's ``cards.csv``; nothing is given where there is none.

    Raises:
        ListingError: it cannot be opened, is not UTF-8 or lacks the columns.
    """
    path = folder / FILE_NAME
    given = GivenNames()
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            _read_rows(csv.reader(stream), given)
    except FileNotFoundError:
        return given
    except OSError as error:
        raise ListingError(f"{path}: {error.strerror or error}: make it readable or remove it.") from error
    except UnicodeDecodeError as error:
        raise ListingError(f"{path}: not UTF-8 ({error.reason}): save it as UTF-8 or remove it.") from error
    return given


def _read_rows(reader: CsvReader, given: GivenNames) -> None:
    header = [cell.strip().lower() for cell in next(reader, [])]
    if "file" not in header or "name" not in header:
        raise ListingError(f"{FILE_NAME}: the first line must name the columns file and name, separated by a comma.")
    columns = header.index("file"), header.index("name")
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            given.problems.append(_problem(line, str(error)))
            continue
        if any(cell.strip() for cell in row):
            _read_row(row, columns, line, given)


def _read_row(row: list[str], columns: tuple[int, int], line: int, given: GivenNames) -> None:
    if len(row) <= max(columns):
        given.problems.append(_problem(line, "file or name is missing"))
        return
    file, name = (row[column].strip() for column in columns)
    key = unicodedata.normalize("NFC", file.removeprefix("./"))
    if not key or not name:
        given.problems.append(_problem(line, "file or name is empty"))
    elif "\n" in name or "\r" in name:
        given.problems.append(_problem(line, "the name runs over several lines: is a quotation mark not closed?"))
    elif key in given.names:
        given.problems.append(_problem(line, f"{file[:200]!r} again: line {given.names[key][0]} counts"))
    else:
        given.names[key] = (line, name)


def _problem(line: int, detail: str) -> ListingProblem:
    return ListingProblem(where=f"{FILE_NAME} line {line}", detail=detail)
