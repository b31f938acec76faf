"""What the drill sends: hostile files and good cards in one stream, the good ones spread evenly among the others."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardpicker.tests.hostile_images import Hostile, hostile_files
from scripts.ops.scratch_product import ROOT
from scripts.ops.stage_c_bench.pictures import vary

SAMPLES = ROOT / "sample_catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Good:
    """A card of the sample catalog, and the printing that it shows."""

    file: str
    name: str
    body: bytes
    expect: tuple[str, str]  #: Set code and collector number.


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One card of the stream."""

    name: str
    body: bytes
    good: Good | None = None
    hostile: Hostile | None = None

    @property
    def kind(self) -> str:
        """The line of the table that it belongs to."""
        return self.hostile.kind if self.hostile is not None else "good card"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """How many of each."""

    hostile: int
    good_per_hostile: int = 0
    hostile_per_good: int = 0  #: Used where the other is 0.

    @property
    def good(self) -> int:
        """How many good cards there are."""
        if self.good_per_hostile:
            return self.hostile * self.good_per_hostile
        return -(-self.hostile // self.hostile_per_good)


def read_good() -> list[Good]:
    """Return the sample cards that show one printing, the smallest files first."""
    with (SAMPLES / "images" / "cards.csv").open(encoding="utf-8", newline="") as lines:
        names = {row["file"]: row["name"] for row in csv.DictReader(lines)}
    with (SAMPLES / "truth.csv").open(encoding="utf-8", newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["expect"] == "printing"]
    found = [
        Good(
            file=row["file"],
            name=names[row["file"]],
            body=(SAMPLES / "images" / row["file"]).read_bytes(),
            expect=(row["expect_set"], row["expect_cn"]),
        )
        for row in rows
    ]
    return sorted(found, key=lambda good: len(good.body))


def undisturbed(good: Sequence[Good]) -> Iterator[Sent]:
    """Yield each good card once, as it is when nothing hostile is near."""
    for card in good:
        yield Sent(name=card.name, body=vary(card.body, 0), good=card)


def stream(mixture: Mixture, good: Sequence[Good], seed: int) -> Iterator[Sent]:
    """Yield the cards in the order in which they are sent; equal seeds give equal bytes."""
    serial = 0
    for place, file in enumerate(hostile_files(mixture.hostile, seed)):
        many = mixture.good_per_hostile or int(place % max(1, mixture.hostile_per_good) == 0)
        for _ in range(many):
            serial += 1
            card = good[serial % len(good)]
            yield Sent(name=card.name, body=vary(card.body, serial), good=card)
        yield Sent(name=f"Hostile {file.name}", body=file.body, hostile=file)
