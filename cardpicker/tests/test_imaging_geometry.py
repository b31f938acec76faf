"""Geometry: where the card lies in pictures with and without bleed, inset, sideways and upside down."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from cardpicker.stage_c.imaging.geometry import bleed_of_ratio, border_fraction, fit_card
from cardpicker.stage_c.imaging.textrows import SURE_FIT
from cardpicker.tests.card_pictures import borderless_on_ground, card, gray
from scripts.ops.bench_geometry import Scene, error_mm, scenes


@pytest.mark.parametrize(("ratio", "bleed_mm"), [(63 / 88, 0.0), (69.35 / 94.35, 3.175), (75.7 / 100.7, 6.35)])
def test_a_ratio_implies_its_bleed(ratio: float, bleed_mm: float) -> None:
    """The formula gives back the bleed that made the ratio."""
    assert bleed_of_ratio(ratio) == pytest.approx(bleed_mm, abs=0.01)


@pytest.mark.parametrize(("bleed_mm", "has_bleed"), [(0.0, False), (3.175, True)])
def test_ratio_and_border_agree_on_bleed(bleed_mm: float, has_bleed: bool) -> None:
    """A regular picture is placed with high confidence."""
    fit = fit_card(gray(card(bleed_mm=bleed_mm)))

    assert fit.has_bleed is has_bleed
    assert fit.bleed_mm == pytest.approx(bleed_mm, abs=0.2)
    assert fit.confidence > 0.9


@pytest.mark.parametrize("ground_mm", [6.0, 7.0])
def test_a_ground_as_wide_as_a_border_with_bleed_leaves_the_place_unsure(ground_mm: float) -> None:
    """Its ratio is no card's, so that the even strip at the sides proves nothing."""
    fit = fit_card(gray(borderless_on_ground(ground_mm)))

    assert fit.confidence < SURE_FIT
    assert not fit.has_card_ratio


def test_a_wide_even_inset_is_measured_from_the_border() -> None:
    """A card set far into its picture is found although the ratio says trimmed."""
    inner = card()
    picture = Image.new("RGB", (round(inner.width * 1.16), round(inner.height * 1.16)), (18, 16, 14))
    picture.paste(inner, (round(inner.width * 0.08), round(inner.height * 0.08)))

    fit = fit_card(gray(picture))

    x, y = fit.point(0.0, 0.0)
    assert (x, y) == pytest.approx((inner.width * 0.08, inner.height * 0.08), abs=18)
    assert 0.4 < fit.confidence < 0.9


def test_a_picture_without_a_border_is_placed_by_its_ratio_and_believed_less() -> None:
    """Noise to the edge gives no border, and so less confidence."""
    noise = np.random.default_rng(1).integers(0, 255, (880, 630), dtype=np.uint8)

    assert border_fraction(noise) is None
    assert fit_card(noise).confidence < 0.7


@pytest.mark.parametrize("rotation_deg", [0, 90, 180, 270])
def test_matrix_and_crop_agree_in_every_turn(rotation_deg: int) -> None:
    """The affine map points at the pixels that the crop shows, upright, whichever way the card lies."""
    upright = card(px_per_mm=8)
    marked = upright.copy()
    marked.paste((255, 0, 255), (80, 160, 120, 200))  # 10 to 15 mm across, 20 to 25 mm down
    lying = gray(marked.rotate(rotation_deg, expand=True))
    fit = fit_card(lying)
    fit = fit if fit.rotation_deg == rotation_deg else fit.turned()
    assert fit.rotation_deg == rotation_deg

    a, b, c, d, e, f = fit.matrix
    x, y = a * 12.5 + b * 22.5 + c, d * 12.5 + e * 22.5 + f
    level = int(np.asarray(marked.convert("L"))[180, 100])
    assert abs(int(lying[int(y), int(x)]) - level) <= 2
    shown = np.asarray(fit.crop(lying, (10.5, 20.5, 14.5, 24.5), (20, 20)))
    assert np.abs(shown.astype(int) - level).max() <= 3


def test_crops_outside_the_picture_are_clipped() -> None:
    """A box that reaches over the edge gives what there is."""
    picture = gray(card(px_per_mm=6))
    fit = fit_card(picture)

    assert fit.crop(picture, (-30.0, -30.0, 5.0, 5.0), (40, 40)).size == (40, 40)
    assert fit.crop(picture, (80.0, 100.0, 90.0, 110.0), (40, 40)).size == (40, 40)
    assert fit.clip((-30.0, 80.0, 90.0, 110.0)) == pytest.approx((0.0, 80.0, 63.0, 88.0), abs=0.4)


LIMITS_MM = {"bleed": 0.3, "inset": 0.3, "off center": 0.5, "tilt": 0.3, "scale": 0.3}


@pytest.mark.parametrize("scene", list(scenes()), ids=lambda scene: f"{scene.group}: {scene.name}")
def test_a_drawn_card_is_placed_within_its_limit(scene: Scene) -> None:
    """Bleed, inset, place, tilt and scale: no text-bearing corner is off by more than a row's height."""
    assert error_mm(scene) <= LIMITS_MM[scene.group]


def test_a_leaning_card_is_shown_level() -> None:
    """The bottom band of a card that leans looks like that of one that does not."""
    box, size = (3.0, 81.0, 26.0, 86.5), (276, 66)
    level, leaning = gray(card(bleed_mm=3.175)), gray(card(bleed_mm=3.175).rotate(2.0, Image.Resampling.BICUBIC))

    shown = [np.asarray(fit_card(picture).crop(picture, box, size), dtype=float) for picture in (level, leaning)]

    assert np.corrcoef(shown[0].ravel(), shown[1].ravel())[0, 1] > 0.85
    assert fit_card(leaning).tilt_deg == pytest.approx(-2.0, abs=0.1)


@pytest.mark.parametrize("rotation_deg", [0, 90])
def test_turning_an_off_center_fit_keeps_the_card_in_place(rotation_deg: int) -> None:
    """The other way up, the same pixels are the card's: its opposite corners change places."""
    picture = Image.new("RGB", (900, 1200), (200, 190, 170))
    picture.paste(card(), (100, 40))
    fit = fit_card(gray(picture.rotate(rotation_deg, expand=True)))

    turned = fit.turned()

    assert turned.point(0.0, 0.0) == pytest.approx(fit.point(63.0, 88.0))
    assert turned.turned().matrix == pytest.approx(fit.matrix)
