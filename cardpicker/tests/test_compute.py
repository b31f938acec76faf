"""Image bytes to evidence with the real engine: layouts, turns, isolation, determinism, cost."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from PIL import Image

from cardpicker.stage_c import compute
from cardpicker.stage_c.compute import compute_card_evidence, extract_all, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors import registry
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.stage_c.imaging.ocr import OcrUnavailableError
from cardpicker.stage_c.outcomes import Unusable, UnusableKind
from cardpicker.tests.card_pictures import MODERN, Line, card, encode

LEXICON = Lexicon(set_codes=frozenset({"mkm", "woe", "m12", "dom"}))
CONTEXT = ComputeContext(artists=("John Avon", "Kev Walker"))


@pytest.fixture(autouse=True)
def warm() -> None:
    """Every test reads with the real engine."""
    warm_up(LEXICON, "tesserocr")


def evidence(image: bytes) -> CardEvidence:
    outcome = compute_card_evidence(image, CONTEXT)
    assert isinstance(outcome, CardEvidence), outcome
    return outcome


FOOTER: tuple[Line, ...] = ((20.0, 81.9, "Illus. John Avon"), (24.0, 83.9, "226/276 - WOE"))
LEGAL: tuple[Line, ...] = ((4.0, 82.0, "Kev Walker"), (4.0, 84.0, "© 1993-2011 Wizards of the Coast LLC 182/249"))


@pytest.mark.parametrize("bleed_mm", [0.0, 3.175])
@pytest.mark.parametrize(
    ("lines", "number", "code"),
    [
        (MODERN, "123", "mkm"),
        (((4.0, 83.8, "R 0123"), (4.0, 85.6, "MKM * EN")), "123", "mkm"),
        (FOOTER, "226", "woe"),
        (LEGAL, "182", ""),
    ],
)
def test_each_layout_is_read_from_pixels(lines: tuple[Line, ...], bleed_mm: float, number: str, code: str) -> None:
    """Number and set code are promoted, with and without bleed, in at most two OCR calls."""
    found = evidence(encode(card(lines, bleed_mm=bleed_mm)))

    assert (found.collector_number, found.set_code) == (number, code)
    assert int(str(found.readings["bottom_text"]["ocr_calls"])) <= 2
    assert found.readings["geometry"]["has_bleed"] is (bleed_mm > 0)


@pytest.mark.parametrize("rotation_deg", [90, 180, 270])
def test_a_card_is_read_whichever_way_it_lies(rotation_deg: int) -> None:
    """Sideways and upside-down pictures give the same line, and say how they lay."""
    found = evidence(encode(card().rotate(rotation_deg, expand=True)))

    assert (found.collector_number, found.set_code) == ("123", "mkm")
    assert found.readings["geometry"]["rotation_deg"] == rotation_deg
    upright = evidence(encode(card()))
    assert found.art_hash is not None
    assert upright.art_hash is not None
    assert ((found.art_hash ^ upright.art_hash) & (2**64 - 1)).bit_count() <= 2


def test_a_blank_image_gives_nulls_and_no_hash() -> None:
    """Nothing there is nothing read: no number, no hash, never 0."""
    found = evidence(encode(Image.new("RGB", (630, 880), (128, 60, 60))))

    assert found.collector_number == found.set_code == ""
    assert found.art_hash is None
    assert found.readings["art_hash"]["hash"] is None
    assert found.readings["bottom_text"]["ocr_calls"] == 0


def test_bytes_that_are_no_image_are_an_outcome() -> None:
    """The refusal of the decoder is passed on."""
    outcome = compute_card_evidence(b"<html></html>", CONTEXT)

    assert isinstance(outcome, Unusable)
    assert outcome.kind == UnusableKind.NOT_AN_IMAGE


def test_readings_do_not_depend_on_order_or_process() -> None:
    """The same bytes give the same evidence, forward, backward and in another process."""
    images = [encode(card(seed=seed, bleed_mm=3.175 * (seed % 2)), "JPEG", quality=60) for seed in range(4)]
    forward = [evidence(image) for image in images]
    backward = [evidence(image) for image in reversed(images)][::-1]
    script = (
        "import sys\n"
        "from cardpicker.stage_c.compute import compute_card_evidence, warm_up\n"
        "from cardpicker.tests.test_compute import CONTEXT, LEXICON\n"
        "warm_up(LEXICON, 'tesserocr')\n"
        "print(repr(compute_card_evidence(sys.stdin.buffer.read(), CONTEXT)))\n"
    )
    elsewhere = subprocess.run([sys.executable, "-c", script], input=images[2], capture_output=True, check=True)

    assert forward == backward
    assert elsewhere.stdout.decode().strip() == repr(forward[2])


@dataclass(frozen=True, slots=True)
class Scripted:
    """An extractor that answers or fails as told."""

    name: str
    failure: Exception | None = None
    version: int = 1
    needs: tuple[str, ...] = ()

    def extract(
        self, image: NormalizedImage, so_far: Mapping[str, Reading], context: ComputeContext, lexicon: Lexicon
    ) -> Reading:
        if self.failure is not None:
            raise self.failure
        return {"seen": [*sorted(so_far)]}


def test_a_failing_extractor_leaves_its_error_and_the_others_go_on() -> None:
    """One extractor's fault is its own reading."""
    image = decode(encode(card(px_per_mm=4)))
    assert isinstance(image, NormalizedImage)

    readings = extract_all(
        image, CONTEXT, LEXICON, [Scripted("a"), Scripted("b", ValueError("no luck")), Scripted("c")]
    )

    assert readings == {"a": {"seen": []}, "b": {"error": "ValueError: no luck"}, "c": {"seen": ["a", "b"]}}


def test_a_lost_engine_is_an_exception_not_a_reading() -> None:
    """Unmeasured is not "no text": the card must be tried again."""
    image = decode(encode(card(px_per_mm=4)))
    assert isinstance(image, NormalizedImage)

    with pytest.raises(OcrUnavailableError):
        extract_all(image, CONTEXT, LEXICON, [Scripted("a", OcrUnavailableError("x", "gone"))])


def test_a_process_that_was_not_warmed_up_refuses_to_read() -> None:
    """Evidence without an engine would say that nothing is there."""
    script = (
        "from cardpicker.stage_c.compute import *\n"
        "from cardpicker.stage_c.evidence import ComputeContext\n"
        "compute_card_evidence(b'', ComputeContext())\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.returncode != 0
    assert "warm_up() has not been called" in done.stderr


def test_manifest_is_short_stable_and_cheap() -> None:
    """The manifest changes with versions only, and imports neither numpy nor an engine."""
    script = (
        "import sys\n"
        "from cardpicker.stage_c.extractors.registry import manifest\n"
        "print(manifest(), 'numpy' in sys.modules, 'tesserocr' in sys.modules, 'django' in sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == [registry.manifest(), "False", "False", "False"]
    assert len(registry.manifest()) <= 64


def test_manifest_follows_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A raised version makes all evidence due."""
    before = registry.manifest()
    monkeypatch.setattr(registry, "EXTRACTORS", (*registry.EXTRACTORS[:-1], Scripted("quality", version=99)))

    assert registry.manifest() != before


def test_the_pure_half_knows_no_django() -> None:
    """Compute workers start without Django, a database or a settings module."""
    script = "import sys, cardpicker.stage_c.compute as c\nprint('django' in sys.modules, c.__name__)\n"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False", compute.__name__]
