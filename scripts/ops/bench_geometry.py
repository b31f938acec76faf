#!/usr/bin/env python
"""How far, in millimeters, the card is placed from where it lies: drawn cards with known bleed, inset, place, tilt and scale.

The error of a picture is the greatest distance between the true and the found pixel of five points of the card, in card
millimeters: its four text-bearing corners and its middle.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cardpicker.stage_c.imaging.geometry import fit_card
from cardpicker.tests.card_pictures import card

POINTS_MM = ((5.0, 5.0), (58.0, 5.0), (5.0, 83.0), (58.0, 83.0), (31.5, 44.0))
DRAWN_PX_PER_MM = 12
BLACK, TABLE = (18, 16, 14), (200, 190, 170)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A card as it lies in a picture."""

    group: str
    name: str
    margins_mm: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)  #: Left, top, right, bottom, around the trim.
    ground: tuple[int, int, int] = BLACK
    tilt_deg: float = 0.0
    width_px: int = 745
    bleed_mm: float = 0.0  #: Of the card that lies on the ground; the margins are around it.


def scenes() -> Iterator[Scene]:
    """Yield the suite; every group varies one thing."""
    for bleed in (0.0, 1.0, 2.0, 3.175, 4.0, 5.0, 6.0):
        yield Scene(group="bleed", name=f"{bleed:g} mm", margins_mm=(bleed,) * 4)
    for inset in (5.0, 8.0, 11.0):
        yield Scene(group="inset", name=f"{inset:g} mm on black", margins_mm=(inset,) * 4)
        yield Scene(group="inset", name=f"{inset:g} mm on a table", margins_mm=(inset,) * 4, ground=TABLE)
    for margins in ((2.0, 3.0, 6.0, 7.0), (6.0, 8.0, 3.0, 2.0), (4.0, 2.0, 8.0, 4.0)):
        name = "/".join(f"{margin:g}" for margin in margins)
        yield Scene(group="off center", name=f"{name} on black", margins_mm=margins)
        yield Scene(group="off center", name=f"{name} on a table", margins_mm=margins, ground=TABLE)
    for bleed in (3.175, 5.0):
        yield Scene(
            group="off center",
            name=f"bleed {bleed:g} on a table",
            margins_mm=(6.0, 5.0, 3.0, 8.0),
            ground=TABLE,
            bleed_mm=bleed,
        )
    for tilt in (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0):
        yield Scene(group="tilt", name=f"{tilt:g} deg, bleed", margins_mm=(3.175,) * 4, tilt_deg=tilt)
        yield Scene(group="tilt", name=f"{tilt:g} deg on a table", margins_mm=(5.0,) * 4, ground=TABLE, tilt_deg=tilt)
    for width in (300, 480, 745, 1500, 2500):
        for bleed in (0.0, 3.175):
            yield Scene(group="scale", name=f"{width} px, bleed {bleed:g}", margins_mm=(bleed,) * 4, width_px=width)


def draw(scene: Scene) -> tuple[Image.Image, float]:
    """Return the picture of ``scene`` and its pixels per millimeter."""
    left, top, right, bottom = scene.margins_mm
    wide, high = 63 + 2 * scene.bleed_mm, 88 + 2 * scene.bleed_mm
    size = (round((wide + left + right) * DRAWN_PX_PER_MM), round((high + top + bottom) * DRAWN_PX_PER_MM))
    picture = Image.new("RGB", size, scene.ground)
    picture.paste(card(bleed_mm=scene.bleed_mm), (round(left * DRAWN_PX_PER_MM), round(top * DRAWN_PX_PER_MM)))
    if scene.tilt_deg:
        middle = ((left + 31.5) * DRAWN_PX_PER_MM, (top + 44) * DRAWN_PX_PER_MM)
        resampling = Image.Resampling.BICUBIC
        picture = picture.rotate(-scene.tilt_deg, resampling, center=middle, fillcolor=scene.ground)
    scale = scene.width_px / size[0]
    height = round(size[1] * scale)
    return picture.resize((scene.width_px, height), Image.Resampling.LANCZOS), DRAWN_PX_PER_MM * scale


def error_mm(scene: Scene) -> float:
    """Return the greatest distance between true and found points."""
    picture, px_per_mm = draw(scene)
    fit = fit_card(np.asarray(picture.convert("L"), dtype=np.uint8))
    left, top = (margin + scene.bleed_mm for margin in scene.margins_mm[:2])
    sine, cosine = math.sin(math.radians(scene.tilt_deg)), math.cos(math.radians(scene.tilt_deg))
    worst = 0.0
    for x_mm, y_mm in POINTS_MM:
        dx, dy = x_mm - 31.5, y_mm - 44.0
        true = (left + 31.5 + cosine * dx - sine * dy, top + 44.0 + sine * dx + cosine * dy)
        x, y = fit.point(x_mm, y_mm)
        worst = max(worst, math.hypot(x / px_per_mm - true[0], y / px_per_mm - true[1]))
    return worst


def main() -> int:
    """Print the error of every scene, and the median and worst of each group."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    suite = list(scenes())
    before = time.process_time()
    errors = {scene: error_mm(scene) for scene in suite}
    spent = time.process_time() - before
    if arguments.json:
        print(json.dumps([{"group": s.group, "scene": s.name, "error_mm": round(e, 3)} for s, e in errors.items()]))
        return 0
    for scene, error in errors.items():
        print(f"{scene.group:12} {scene.name:28} {error:5.2f} mm")
    for group in dict.fromkeys(scene.group for scene in suite):
        values = [error for scene, error in errors.items() if scene.group == group]
        print(f"{group:12} median {median(values):.2f} mm, worst {max(values):.2f} mm")
    print(f"{len(suite)} pictures drawn and placed in {spent:.1f} s of CPU")
    return 0


if __name__ == "__main__":
    sys.exit(main())
