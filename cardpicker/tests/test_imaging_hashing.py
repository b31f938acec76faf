"""Perceptual hashes: equal to the reference implementation, and absent where a picture says nothing."""

from __future__ import annotations

import imagehash
import numpy as np
import pytest
from PIL import Image, ImageDraw

from cardpicker.stage_c.imaging.hashing import MIN_DETAIL, detail, phash64, sample, signed64, usable_hash
from cardpicker.stage_d.art_index import ArtIndex
from cardpicker.tests.card_pictures import art


@pytest.mark.parametrize("seed", range(12))
def test_hash_equals_imagehash(seed: int) -> None:
    """The 64 bits are those of the library that the reference hashes came from."""
    picture = art(seed, (256, 192)).convert("L")

    assert f"{phash64(sample(picture)):016x}" == str(imagehash.phash(picture))


def test_other_art_has_another_hash_and_a_smaller_copy_the_same() -> None:
    """The hash follows the picture, not its size."""
    one, same, other = art(1, (600, 450)), art(1, (600, 450)).resize((300, 225)), art(2, (600, 450))
    first, second, third = (phash64(sample(p)) for p in (one, same, other))

    assert (first ^ second).bit_count() <= 2
    assert (first ^ third).bit_count() > 12


@pytest.mark.parametrize("color", [0, 128, 255])
def test_flat_pictures_have_no_detail(color: int) -> None:
    """Blank pictures stay below the limit."""
    assert detail(sample(Image.new("L", (256, 192), color))) < MIN_DETAIL


@pytest.mark.parametrize("size", [(1, 1), (256, 192), (740, 1036)])
@pytest.mark.parametrize("color", ["black", "white", "red", "#e8eaed"])
def test_flat_pictures_have_no_usable_hash_and_no_neighbors(color: str, size: tuple[int, int]) -> None:
    """Black hashes to 0, which others take for "none yet", and white and red hash alike: none of them has a hash."""
    value = usable_hash(sample(Image.new("RGB", size, color)))

    assert value is None
    assert ArtIndex([1, 2, 3], [0, 1 << 63, 1]).nearest([value]) == [None]


def test_a_placeholder_has_no_usable_hash() -> None:
    """A gray sheet with a small sign in the middle, as image hosts show for what they cannot show."""
    sheet = Image.new("L", (256, 192), 236)
    ImageDraw.Draw(sheet).rectangle((118, 88, 138, 104), outline=160, width=2)

    assert usable_hash(sample(sheet)) is None


def test_gradients_have_no_detail_and_art_has() -> None:
    """A smooth gradient hashes alike everywhere, so it counts as flat; art does not."""
    gradient = Image.fromarray(np.tile(np.linspace(0, 255, 256).astype(np.uint8), (192, 1)))

    assert detail(sample(gradient)) < MIN_DETAIL < detail(sample(art()))


def test_signed_value_keeps_the_bits() -> None:
    """The database's signed integer and the hex digits are one pattern."""
    for value in (1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1):
        assert signed64(value) % (1 << 64) == value
        assert -(1 << 63) <= signed64(value) < 1 << 63
