"""The drill's catalog: a folder of distinct images made from a few samples, so that what each must come to is known."""

from __future__ import annotations

import csv
import hashlib
import io
import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import transaction

from cardpicker.catalogue.name_key import name_key
from cardpicker.models import Card, CardPrintingTag, ImageEvidence, ReviewItem, Source
from scripts.ops.drill.cluster import PROJECT

SAMPLE = PROJECT / "sample_catalogue"
TWINS = 3
#: An empty card and a file that was cut off: what is appended to them would make other images of them.
LEFT_OUT = frozenset({"mind-stone-blank.jpg", "bloodbraid-elf-pca-cut-off.jpg"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """An image of the sample catalog and the name that its card bears."""

    file: str
    name: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """All that the pipeline made of one card; equal images of equal names come to equal results."""

    readings: str
    votes: tuple[tuple[Any, ...], ...]
    review: tuple[Any, ...] | None
    printing: int | None
    status: str


class Catalog:
    """The cards of a folder, half of them listed as files and half as what a server makes of it, and what each shows now."""

    def __init__(self, folder: Path, web_url: str, samples: int) -> None:
        self.folder = folder
        self.samples = _read_samples(samples)
        self.shows: dict[int, str] = {}
        self._serial = 0
        call_command("import_canonical_card_data", "--from", str(SAMPLE / "printings.jsonl"), stdout=io.StringIO())
        self._web_url = web_url
        self._local, self._web = (
            Source.objects.create(key=f"drill-{kind[:4]}", name=kind, kind=kind, location=location)
            for kind, location in (("local_folder", str(folder)), ("http_manifest", f"{web_url}/list.csv"))
        )

    def add_samples(self) -> list[int]:
        """Add a card for each sample, as a first work whose results are the measure of all later ones."""
        return self._save([(self._new_card(), sample) for sample in self.samples], twins=0)

    def add_cards(self, count: int, rng: random.Random, *, local: bool) -> list[int]:
        """Add ``count`` new cards of random samples, as one upload; each image is another file.

        Args:
            local: have them all in the folder, whose images come as fast as they can be read.
        """
        cards = [self._new_card(local=local) for _ in range(count)]
        return self._save([(card, rng.choice(self.samples)) for card in cards], twins=0)

    def make_work(self, count: int, rng: random.Random) -> list[int]:
        """Give ``count`` cards fresh images and save them, as one upload; a few are new, a few are twins of others."""
        known = list(Card.objects.order_by("pk"))
        fresh = max(1, count // 6)
        chosen = rng.sample(known, min(count - fresh, len(known)))
        cards = chosen + [self._new_card() for _ in range(count - len(chosen))]
        return self._save([(card, rng.choice(self.samples)) for card in cards], twins=min(TWINS, count // 4))

    def _new_card(self, *, local: bool = False) -> Card:
        file = f"card-{self._next():05}.img.jpg"
        if local or self._serial % 2:
            return Card(source=self._local, identifier=file, name="", image_version="")
        return Card(source=self._web, identifier=f"{self._web_url}/{file}", name="", image_version="")

    def _save(self, work: list[tuple[Card, Sample]], *, twins: int) -> list[int]:
        """Write the images and save the cards in one transaction; the last ``twins`` are copies of the first ones."""
        originals = work[: len(work) - twins]
        paired = originals + [(work[len(originals) + n][0], originals[n][1]) for n in range(twins)]
        bodies = [self._fresh_body(sample) for _, sample in originals]
        bodies += bodies[:twins]
        for (card, sample), body in zip(paired, bodies, strict=True):
            (self.folder / Path(card.identifier).name).write_bytes(body)
            card.name, card.name_key = sample.name, name_key(sample.name)
            card.sha256_checksum = card.image_version = hashlib.sha256(body).hexdigest()
            card.size, card.extension = len(body), "jpg"
        with transaction.atomic():
            for card, _ in paired:
                fields = ["identifier", "name", "name_key", "sha256_checksum", "image_version", "size", "extension"]
                card.save(update_fields=None if card.pk is None else fields)
        self.shows |= {card.pk: sample.file for card, sample in paired}
        return [card.pk for card, _ in paired]

    def _fresh_body(self, sample: Sample) -> bytes:
        return sample.body + b"#" + str(self._next()).encode()

    def _next(self) -> int:
        self._serial += 1
        return self._serial


def results(card_ids: Collection[int]) -> Mapping[int, Result]:
    """Return what the pipeline has made of cards, by their ids; those without evidence are left out."""
    cards = Card.objects.in_bulk(card_ids)
    votes: dict[int, list[tuple[Any, ...]]] = {card_id: [] for card_id in card_ids}
    for card_id, *vote in CardPrintingTag.objects.filter(card_id__in=card_ids).values_list(
        "card_id", "anonymous_id", "printing_id", "is_no_match", "source", "confidence"
    ):
        votes[card_id].append(tuple(vote))
    reviews = {
        card_id: (reason, tuple(survivors))
        for card_id, reason, survivors in ReviewItem.objects.filter(card_id__in=card_ids).values_list(
            "card_id", "reason", "survivors"
        )
    }
    return {
        row.card_id: Result(
            readings=repr(sorted(row.readings.items())),
            votes=tuple(sorted(votes[row.card_id], key=repr)),
            review=reviews.get(row.card_id),
            printing=cards[row.card_id].inferred_canonical_card_id,
            status=cards[row.card_id].printing_tag_status,
        )
        for row in ImageEvidence.objects.filter(card_id__in=card_ids)
    }


def _read_samples(count: int) -> list[Sample]:
    """Return the first ``count`` samples, the smallest files first: they are the quickest to read."""
    folder = SAMPLE / "images"
    with (folder / "cards.csv").open(encoding="utf-8", newline="") as lines:
        names = {row["file"]: row["name"] for row in csv.DictReader(lines)}
    files = sorted(
        (path for path in folder.iterdir() if path.name in names.keys() - LEFT_OUT),
        key=lambda path: path.stat().st_size,
    )
    return [Sample(file=path.name, name=names[path.name], body=path.read_bytes()) for path in files[:count]]
