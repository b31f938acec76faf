"""The kinds of damage by name, each with the strength that stands for it. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from PIL import Image

from scripts.ops.damaged import effects

Effect = Callable[[Image.Image, np.random.Generator], Image.Image]

UNCHANGED: Final = "as-is"
#: Good enough to add no damage of its own.
FINE_QUALITY: Final = 95


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One kind of damage; the same picture, file name and seed always give the same pixels."""

    name: str
    effect: Effect
    quality: int = FINE_QUALITY  #: Of the JPEG file; below the fine one colors are halved as well.
    longest_px: int | None = None  #: Pictures that are smaller are left out: nobody enlarges.

    def apply(self, image: Image.Image, file: str, seed: int) -> Image.Image:
        """Return a damaged copy of an upright RGB picture."""
        draw = np.random.default_rng([seed, zlib.crc32(f"{self.name}/{file}".encode())])
        return self.effect(image, draw)


def _kinds() -> tuple[Damage, ...]:
    made: dict[str, Effect] = {
        UNCHANGED: effects.unchanged,
        "scaled-80": partial(effects.scaled, factor=0.8),
        "scaled-65": partial(effects.scaled, factor=0.65),
        "scaled-50": partial(effects.scaled, factor=0.5),
        "blurred": partial(effects.blurred, per_mille=0.9),
        "noisy": partial(effects.noisy, strength=1.2),
        "rotated-0.8": partial(effects.rotated, degrees=0.8),
        "rotated-1.5": partial(effects.rotated, degrees=1.5),
        "bleed-mirrored": effects.mirrored_bleed,
        "bleed-plain": effects.plain_bleed,
        "trimmed": partial(effects.trimmed, too_far_mm=1.0),
        "inset-black": partial(effects.inset_on_black, margin=0.08),
        "inset-table": partial(effects.inset_on_table, margin=0.08),
        "off-center": partial(effects.off_center, margin=0.04),
        "dark": partial(effects.toned, brightness=0.6, gamma=1.2),
        "pale": partial(effects.toned, brightness=1.15, contrast=0.55, gamma=0.8),
        "tinted": partial(effects.tinted, strength=0.3),
        "stretched": partial(effects.stretched, factor=1.03),
        "perspective": partial(effects.perspective, strength=0.015),
        "sharpened": partial(effects.sharpened, per_mille=1.5, percent=250),
        "moire": partial(effects.moire, strength=0.25),
        "scan-lines": partial(effects.scan_lines, per_mille=4, strength=0.3),
    }
    compressed = tuple(Damage(name=f"jpeg-{q}", effect=effects.unchanged, quality=q) for q in (40, 25))
    return (*(Damage(name=name, effect=effect) for name, effect in made.items()), *compressed)


KINDS: Final = {damage.name: damage for damage in _kinds()}


def scaled_to(longest_px: int) -> Damage:
    """Return the damage of having ``longest_px`` on the longer side."""
    effect = partial(effects.reduced, longest_px=longest_px)
    return Damage(name=f"longest-{longest_px}px", effect=effect, longest_px=longest_px)
