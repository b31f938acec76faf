"""Hostile files through the whole computation, mixed with good cards: each a named outcome, and none harms the next."""

from __future__ import annotations

import os

import psutil
import pytest
from PIL import ImageFile

from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon
from cardpicker.stage_c.outcomes import Unusable
from cardpicker.tests.card_pictures import card, encode
from cardpicker.tests.hostile_images import CARD_NUMBER, CARD_SET, KIND_NAMES, Hostile, hostile_files

COUNT, GOOD_EVERY = 2 * len(KIND_NAMES), 20
SEEN = (CARD_NUMBER, CARD_SET)


def complaint(file: Hostile) -> str:
    """Return what is wrong with the outcome of ``file``; empty when nothing is."""
    outcome = compute_card_evidence(file.body, ComputeContext())
    if isinstance(outcome, Unusable):
        if outcome.kind not in file.refused_as or not outcome.detail or "\n" in outcome.detail:
            return f"{file.name}: {outcome}"
        return ""
    if file.refused_as and not file.or_read:
        return f"{file.name}: was read"
    errors = [name for name, reading in outcome.readings.items() if "error" in reading]
    if errors or (file.is_card and (outcome.collector_number, outcome.set_code) != SEEN):
        return f"{file.name}: {errors}, read {outcome.collector_number!r} {outcome.set_code!r}"
    return f"{file.name}: a hash of nothing" if file.is_blank and outcome.art_hash is not None else ""


@pytest.fixture
def _ready() -> None:
    warm_up(Lexicon(set_codes=frozenset({CARD_SET})), "tesserocr")


@pytest.mark.usefixtures("_ready")
def test_every_hostile_file_is_a_named_outcome_and_every_good_card_is_read() -> None:
    """Good cards among them read alike throughout; no handle stays open, memory stays bounded."""
    good = encode(card(), "JPEG", quality=90)
    first = compute_card_evidence(good, ComputeContext())
    process = psutil.Process()
    handles, memory = len(os.listdir("/proc/self/fd")), process.memory_info().rss
    complaints: list[str] = []
    for place, file in enumerate(hostile_files(COUNT)):
        complaints.append(complaint(file))
        if place % GOOD_EVERY == 0 and compute_card_evidence(good, ComputeContext()) != first:
            complaints.append(f"the good card reads otherwise after {file.name}")

    assert [text for text in complaints if text] == []
    assert isinstance(first, CardEvidence) and (first.collector_number, first.set_code) == SEEN
    assert len(os.listdir("/proc/self/fd")) <= handles + 1
    assert process.memory_info().rss - memory < 150_000_000


@pytest.mark.usefixtures("_ready")
def test_cut_files_are_refused_whatever_another_library_tolerates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The switch that paints the missing part gray is of the process; here it is off, and left as it was."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)

    complaints = [complaint(file) for file in hostile_files(len(KIND_NAMES), seed=2) if "cut" in file.kind]

    assert len(complaints) == sum("cut" in name for name in KIND_NAMES) > 6
    assert not any(complaints)
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_equal_seeds_give_equal_files() -> None:
    """A failure can be made again."""
    assert list(hostile_files(50, seed=3)) == list(hostile_files(50, seed=3))
    assert list(hostile_files(50, seed=3)) != list(hostile_files(50, seed=4))
