"""Abstract pictures for sample cards, drawn with integer image operations so that they repeat byte for byte."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from itertools import pairwise

from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageOps

Color = tuple[int, int, int]
SIZE_PX = (804, 582)  #: The art box of a modern frame at 15 px per mm; callers resize.

#: Dark, middle and light tone of each tint, then an accent.
PALETTES: dict[str, tuple[Color, Color, Color, Color]] = {
    "white": ((74, 62, 52), (214, 188, 140), (255, 248, 226), (196, 92, 48)),
    "blue": ((14, 28, 62), (52, 118, 178), (210, 236, 248), (250, 214, 120)),
    "black": ((18, 14, 24), (92, 74, 108), (206, 194, 210), (120, 190, 140)),
    "red": ((48, 12, 10), (178, 58, 34), (250, 200, 140), (80, 60, 140)),
    "green": ((14, 34, 20), (66, 128, 66), (226, 238, 178), (224, 150, 60)),
    "gold": ((50, 34, 16), (190, 148, 62), (252, 236, 180), (70, 96, 150)),
    "steel": ((34, 36, 42), (116, 126, 136), (228, 232, 236), (176, 90, 60)),
}


def value_noise(size: tuple[int, int], rng: random.Random, cells: int) -> Image.Image:
    """Return smooth gray noise: random values on ``cells`` columns, interpolated."""
    rows = max(2, cells * size[1] // size[0])
    grid = Image.frombytes("L", (cells, rows), rng.randbytes(cells * rows))
    return grid.resize(size, Image.Resampling.BICUBIC)


def fractal_noise(size: tuple[int, int], rng: random.Random, cells: int = 4, octaves: int = 4) -> Image.Image:
    """Return gray noise with detail at several scales, each half as strong as the one before."""
    noise = value_noise(size, rng, cells)
    for octave in range(1, octaves):
        noise = Image.blend(noise, value_noise(size, rng, cells * 2**octave), 1 / (octave + 2))
    return noise


def paint(scene: str, tint: str, seed: str) -> Image.Image:
    """Return the picture ``seed`` names: a sky of noise, then the scene's shapes, then a little grain."""
    rng = random.Random(seed)
    dark, middle, light, accent = PALETTES[tint]
    gradient = Image.linear_gradient("L").rotate(rng.choice((0, 90, 180, 270))).resize(SIZE_PX)
    sky = Image.blend(gradient, fractal_noise(SIZE_PX, rng), 0.55)
    picture = ImageOps.colorize(sky, dark, light, mid=middle)
    SCENES[scene](picture, rng, (dark, middle, light, accent))
    grain = value_noise(SIZE_PX, rng, SIZE_PX[0] // 4).convert("RGB")
    return Image.blend(picture.filter(ImageFilter.GaussianBlur(0.6)), ImageChops.overlay(picture, grain), 0.12)


def _shade(color: Color, factor: float) -> Color:
    red, green, blue = (max(0, min(255, round(channel * factor))) for channel in color)
    return red, green, blue


def _peaks(picture: Image.Image, rng: random.Random, tones: tuple[Color, ...]) -> None:
    draw = ImageDraw.Draw(picture)
    width, height = SIZE_PX
    sun = rng.randrange(120, width - 120), rng.randrange(80, 220), rng.randrange(40, 90)
    draw.ellipse((sun[0] - sun[2], sun[1] - sun[2], sun[0] + sun[2], sun[1] + sun[2]), fill=tones[3])
    for layer in range(4):
        base = 200 + layer * 95
        ridge = [(x, base + rng.randrange(-90, 90)) for x in range(0, width + 70, 67)]
        draw.polygon([(0, height), *ridge, (width, height)], fill=_shade(tones[1], 1.0 - 0.22 * layer))
        for (x0, y0), (x1, y1) in pairwise(ridge):
            if y1 > y0:
                draw.polygon([(x0, y0), (x1, y1), (x0 + 12, y0 + 110)], fill=_shade(tones[2], 0.85 - 0.15 * layer))


def _orbs(picture: Image.Image, rng: random.Random, tones: tuple[Color, ...]) -> None:
    draw = ImageDraw.Draw(picture)
    for _ in range(26):
        x, y, radius = rng.randrange(SIZE_PX[0]), rng.randrange(SIZE_PX[1]), rng.randrange(18, 120)
        color = rng.choice(tones)
        for step in range(6):
            inset = radius * step // 7
            shifted = x - inset // 3, y - inset // 3
            box = (shifted[0] - radius + inset, shifted[1] - radius + inset)
            draw.ellipse(
                (*box, shifted[0] + radius - inset, shifted[1] + radius - inset), _shade(color, 0.7 + step / 9)
            )


def _spires(picture: Image.Image, rng: random.Random, tones: tuple[Color, ...]) -> None:
    draw = ImageDraw.Draw(picture)
    for index in range(22):
        x, half = rng.randrange(SIZE_PX[0]), rng.randrange(12, 46)
        top = rng.randrange(30, 380) + index * 4
        color = _shade(rng.choice(tones[:3]), 0.55 + index / 50)
        draw.polygon([(x, top), (x + half, SIZE_PX[1]), (x, SIZE_PX[1])], fill=_shade(color, 0.7))
        draw.polygon([(x, top), (x - half, SIZE_PX[1]), (x, SIZE_PX[1])], fill=color)
        for window in range(top + 70, SIZE_PX[1], 58):
            draw.rectangle((x - 4, window, x + 3, window + 14), fill=tones[3])


def _waves(picture: Image.Image, rng: random.Random, tones: tuple[Color, ...]) -> None:
    draw = ImageDraw.Draw(picture)
    for band in range(11):
        phase, length, reach = rng.random() * 6.28, rng.randrange(90, 260), rng.randrange(12, 44)
        base = 60 + band * 52
        crest = [(x, round(base + reach * math.sin(x / length * 6.28 + phase))) for x in range(0, SIZE_PX[0] + 12, 12)]
        draw.polygon(
            [(0, SIZE_PX[1]), *crest, (SIZE_PX[0], SIZE_PX[1])], fill=_shade(tones[band % 3], 0.75 + band / 40)
        )
        draw.line(crest, fill=_shade(tones[2], 1.0), width=3)
    x, y = rng.randrange(150, 650), rng.randrange(90, 300)
    draw.polygon([(x, y - 90), (x + 70, y + 60), (x - 40, y + 40)], fill=tones[3])


def _shards(picture: Image.Image, rng: random.Random, tones: tuple[Color, ...]) -> None:
    draw = ImageDraw.Draw(picture)
    center = rng.randrange(250, 560), rng.randrange(180, 400)
    for _ in range(64):
        angle, reach = rng.random() * 2 * math.pi, rng.randrange(120, 620)
        spread = 0.04 + rng.random() * 0.16
        corners = [
            (round(center[0] + reach * math.cos(a)), round(center[1] + reach * math.sin(a)))
            for a in (angle - spread, angle + spread)
        ]
        draw.polygon([center, *corners], fill=_shade(rng.choice(tones), 0.6 + rng.random() * 0.5))
    draw.ellipse(
        (center[0] - 46, center[1] - 46, center[0] + 46, center[1] + 46), fill=tones[2], outline=tones[0], width=5
    )


def _rings(picture: Image.Image, rng: random.Random, tones: tuple[Color, ...]) -> None:
    draw = ImageDraw.Draw(picture)
    for _ in range(7):
        x, y = rng.randrange(SIZE_PX[0]), rng.randrange(SIZE_PX[1])
        for radius in range(rng.randrange(80, 240), 10, -rng.randrange(13, 29)):
            start, sweep = rng.randrange(360), rng.randrange(120, 340)
            box = (x - radius, y - radius, x + radius, y + radius)
            draw.arc(box, start, start + sweep, fill=_shade(rng.choice(tones), 0.9), width=rng.randrange(5, 13))


SCENES: dict[str, Callable[[Image.Image, random.Random, tuple[Color, ...]], None]] = {
    "peaks": _peaks,
    "orbs": _orbs,
    "spires": _spires,
    "waves": _waves,
    "shards": _shards,
    "rings": _rings,
}
