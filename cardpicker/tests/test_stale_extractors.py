"""Only stale extractors run again: what the others read of the same bytes is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from cardpicker.models import CanonicalExpansion, ImageEvidence
from cardpicker.stage_c.compute import compute_card_evidence, kept_readings, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, KnownReadings, Lexicon, Reading
from cardpicker.stage_c.extractors.registry import EXTRACTORS, extractor_versions, unchanged
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.stage_c.plan import load_plans
from cardpicker.tests.card_pictures import card, encode
from cardpicker.tests.stage_c_rig import Recorder, add_cards

IMAGE = encode(card())
SHA256 = hashlib.sha256(IMAGE).hexdigest()


def known(stale: Mapping[str, int], sha256: str = SHA256) -> KnownReadings:
    """Return marked readings of every extractor; ``stale`` ones are of another version."""
    versions = {**extractor_versions(), **stale}
    return KnownReadings(image_sha256=sha256, versions=versions, readings={name: {"kept": True} for name in versions})


def names_kept(context: ComputeContext) -> set[str]:
    return set(kept_readings(context, SHA256))


@pytest.mark.parametrize(
    ("stale", "again"),
    [
        ({}, set()),
        ({"frame": 0}, {"frame"}),
        ({"quality": 0}, {"quality", "frame"}),
        ({"collector_line": 0}, {"collector_line", "artist", "frame"}),
        ({"bottom_text": 0}, set(extractor_versions()) - {"corners"}),
    ],
)
def test_a_stale_extractor_takes_along_those_that_use_its_reading(stale: dict[str, int], again: set[str]) -> None:
    """And nobody else."""
    assert names_kept(ComputeContext(known=known(stale))) == set(extractor_versions()) - again


def test_other_bytes_a_failure_or_nothing_known_keep_nothing() -> None:
    """Readings are of bytes, and an error is no reading."""
    failed = KnownReadings(
        image_sha256=SHA256, versions=extractor_versions(), readings={"quality": {"error": "ValueError: no"}}
    )

    assert names_kept(ComputeContext(known=known({}, "0" * 64))) == set()
    assert names_kept(ComputeContext(known=failed)) == set()
    assert names_kept(ComputeContext()) == set()


@dataclass(frozen=True, slots=True)
class Watched(Mapping[str, Reading]):
    """Readings that note which of them were asked for."""

    readings: dict[str, Reading]
    asked: set[str]

    def __getitem__(self, name: str) -> Reading:
        self.asked.add(name)
        return self.readings[name]

    def __iter__(self) -> Iterator[str]:
        self.asked.update(self.readings)
        return iter(self.readings)

    def __len__(self) -> int:
        return len(self.readings)


def test_every_extractor_says_whose_readings_it_uses() -> None:
    """An undeclared need would keep a reading that is stale."""
    warm_up(Lexicon(set_codes=frozenset({"mkm"})), "tesserocr")
    image = decode(IMAGE)
    assert isinstance(image, NormalizedImage)
    readings: dict[str, Reading] = {}
    for extractor in EXTRACTORS:
        watched = Watched(readings=dict(readings), asked=set())
        readings[extractor.name] = extractor.extract(image, watched, ComputeContext(), Lexicon())

        assert watched.asked <= set(extractor.needs), extractor.name


def test_kept_readings_make_the_same_evidence() -> None:
    """A card read in two steps is a card read at once."""
    warm_up(Lexicon(set_codes=frozenset({"mkm"})), "tesserocr")
    whole = compute_card_evidence(IMAGE, ComputeContext())
    assert isinstance(whole, CardEvidence)
    older = KnownReadings(
        image_sha256=SHA256, versions=extractor_versions() | {"quality": 0}, readings=dict(whole.readings)
    )

    assert compute_card_evidence(IMAGE, ComputeContext(known=older)) == whole
    assert "bottom_text" in unchanged(older.versions)


@pytest.mark.django_db
def test_a_raised_version_reads_only_what_is_stale(tmp_path: Path) -> None:
    """Stored readings of unchanged extractors survive; evidence that was taken back is read whole."""
    CanonicalExpansion.objects.create(code="mkm", name="Murders at Karlov Manor")
    stale, taken_back = add_cards(tmp_path, [IMAGE, encode(card(seed=8))])
    Recorder().run([stale, taken_back], parts=None)
    for evidence in ImageEvidence.objects.all():
        evidence.readings["bottom_text"]["from_before"] = evidence.readings["quality"]["from_before"] = True
        evidence.extractor_versions["quality"] = 0
        evidence.manifest = "older" if evidence.card_id == stale.pk else ""
        evidence.save()

    Recorder().run([stale, taken_back], parts=None)

    first, second = ImageEvidence.objects.order_by("card_id")
    assert first.readings["bottom_text"]["from_before"] is True
    assert "from_before" not in first.readings["quality"]
    assert "from_before" not in second.readings["bottom_text"]
    assert first.collector_number == second.collector_number == "123"
    assert all(plan.is_current and plan.known is None for plan in load_plans([stale.pk, taken_back.pk]))
