"""How round the corners are, measured on drawn cards of known radius."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from cardpicker.stage_c.imaging.corners import corner_radius_mm
from cardpicker.tests.card_pictures import card, gray

STANDARD_MM, ALPHA_MM = 2.7, 4.26


def rounded(picture: Image.Image, radius_mm: float, ground: int = 255) -> Image.Image:
    """Cut the corners off, as the image of a real card has them."""
    scale = 4
    mask = Image.new("L", (picture.width * scale, picture.height * scale), 0)
    radius = radius_mm * picture.width / 63 * scale
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, mask.width - 1, mask.height - 1), radius, fill=255)
    outside = Image.new("RGB", picture.size, (ground, ground, ground))
    return Image.composite(picture, outside, mask.resize(picture.size, Image.Resampling.LANCZOS))


@pytest.mark.parametrize("width_px", [260, 488, 745, 1500])
@pytest.mark.parametrize("radius_mm", [2.2, STANDARD_MM, 3.3, ALPHA_MM])
def test_radius_is_measured_to_a_tenth_of_a_millimeter_at_every_size(radius_mm: float, width_px: int) -> None:
    """From small thumbnails to large scans, the error stays far below the gap between Alpha and all later cards."""
    picture = rounded(card(), radius_mm).resize((width_px, round(width_px * 88 / 63)), Image.Resampling.LANCZOS)

    measured = corner_radius_mm(gray(picture))

    assert measured == pytest.approx(radius_mm, abs=0.15)


@pytest.mark.parametrize("quality", [30, 60, 90])
def test_compression_does_not_move_the_radius(quality: int) -> None:
    """Rings around the edge are not taken for border."""
    body = io.BytesIO()
    rounded(card(), ALPHA_MM).resize((672, 939)).save(body, "JPEG", quality=quality)

    assert corner_radius_mm(gray(Image.open(body))) == pytest.approx(ALPHA_MM, abs=0.15)


def test_three_corners_suffice_and_two_do_not() -> None:
    """A finger or a sticker on one corner costs nothing; with two the picture is no witness."""
    picture = rounded(card(), ALPHA_MM)
    width, height, side = *picture.size, 100
    picture.paste((18, 16, 14), (0, 0, side, side))
    assert corner_radius_mm(gray(picture)) == pytest.approx(ALPHA_MM, abs=0.15)

    picture.paste((18, 16, 14), (width - side, height - side, width, height))
    assert corner_radius_mm(gray(picture)) is None


def test_corners_that_differ_are_no_measurement() -> None:
    """Half a picture from here and half from there is not one card."""
    picture = rounded(card(), STANDARD_MM)
    other = rounded(card(), ALPHA_MM)
    picture.paste(other.crop((0, 0, other.width // 2, other.height)), (0, 0))

    assert corner_radius_mm(gray(picture)) is None


@pytest.mark.parametrize(
    "picture",
    [
        card(),
        card(bleed_mm=3.175),
        rounded(card(), 0.3),
        rounded(card(), ALPHA_MM, ground=20),
        rounded(card(bleed_mm=3.175), ALPHA_MM),
        Image.new("RGB", (630, 880), (200, 200, 200)),
    ],
    ids=["square", "bleed", "nearly square", "black on black", "rounded bleed", "empty"],
)
def test_what_is_not_seen_is_not_measured(picture: Image.Image) -> None:
    """Bleed, square corners and corners without contrast say nothing."""
    assert corner_radius_mm(gray(picture)) is None


def test_a_cut_edge_is_no_rounded_corner() -> None:
    """Corners cut straight, as by scissors, cover the area of a smaller circle and are refused by their shape."""
    picture = card()
    draw = ImageDraw.Draw(picture)
    width, height, cut = *picture.size, 30
    for x, y, dx, dy in ((0, 0, 1, 1), (width, 0, -1, 1), (0, height, 1, -1), (width, height, -1, -1)):
        draw.polygon([(x, y), (x + dx * cut, y), (x, y + dy * cut)], fill=(255, 255, 255))

    assert corner_radius_mm(gray(picture)) is None
