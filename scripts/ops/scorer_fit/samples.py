"""Cards whose printing is known, as the calculators would be given them: synthetic ones, and a truth file's."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardpicker.stage_c.compute import compute_card_evidence
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext
from cardpicker.stage_d.matching import normalize_number
from cardpicker.stage_d.subjects import Subject
from scripts.ops.scorer_fit.printings import Art, Printings
from scripts.ops.scorer_fit.scenarios import Kind

#: One in so many printings is taken to be under a name that nobody would find, such as a nickname.
UNFINDABLE = 17


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One card, and the printing that it shows; None where it shows none of the catalog's."""

    key: str
    kind: str
    subject: Subject
    truth: int | None
    truth_sets: frozenset[str] = frozenset()  #: The set codes that may be printed on it.
    is_case: bool = False


def synthetic_samples(path: Path, printings: Printings) -> list[Sample]:
    """Return the cards that fit_scorer_cards.py wrote."""
    with path.open(encoding="utf-8") as lines:
        cards = [json.loads(line) for line in lines]
    return [_synthetic(card, printings) for card in cards if not _is_proxy(card)]


def _is_proxy(card: dict[str, Any]) -> bool:
    """Tell whether an invented card bears line, art and artist of one printing: under any name that shows the printing."""
    return card["kind"] == Kind.INVENTED and card["illustration"] is not None


def _synthetic(card: dict[str, Any], printings: Printings) -> Sample:
    art = Art(illustration_id=card["illustration"], hash=card["art_hash"])
    hidden = _with_twins([printings.index[identifier] for identifier in card["hidden"]], printings)
    truth = printings.index[card["truth"]] if card["truth"] is not None else None
    is_unfindable = card["kind"] == Kind.PRINTING and card["number"] % UNFINDABLE == 0
    name = "Zqxname" if is_unfindable else card["name"]
    return Sample(
        key=str(card["number"]),
        kind="unfindable" if is_unfindable else card["kind"],
        subject=printings.subject(name, card["readings"], hidden=hidden, art=art),
        truth=truth,
        truth_sets=_sets(truth, printings),
    )


def _with_twins(hidden: Iterable[int], printings: Printings) -> list[int]:
    """Return printings with all that bear their line: a catalog that lacks one and has its reprint in The List is none."""
    return [owner.id for place in hidden for owner in printings.by_line[printings.candidates[place].lines[0]]]


def case_samples(folder: Path, printings: Printings) -> Iterator[Sample]:
    """Yield the cards of a folder with ``truth.csv`` and ``images``, read by Stage C, that show one printing or none.

    Where the truth file expects nobody to tell (``abstain``), nothing is counted.
    """
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        path = folder / "images" / row["file"]
        if row["expect"] == "abstain" or not path.is_file():
            continue
        found = compute_card_evidence(path.read_bytes(), ComputeContext(artists=printings.artists(row["name"])))
        if isinstance(found, CardEvidence):
            subject = printings.subject(row["name"], found.readings)
            truth = _expected(row, printings) if row["expect"] == "printing" else None
            sets = _sets(truth, printings)
            yield Sample(key=row["file"], kind=row["kind"], subject=subject, truth=truth, truth_sets=sets, is_case=True)


def _sets(truth: int | None, printings: Printings) -> frozenset[str]:
    return printings.candidates[truth].printed_sets if truth is not None else frozenset()


def _expected(row: dict[str, str], printings: Printings) -> int | None:
    """Return the printing that a row expects; None where the catalog lacks it."""
    number = normalize_number(row["expect_cn"])
    fitting: Iterable[int] = (
        candidate.id
        for candidate in printings.candidates
        if candidate.set_code == row["expect_set"] and normalize_number(candidate.number) == number
    )
    return next(iter(fitting), None)
