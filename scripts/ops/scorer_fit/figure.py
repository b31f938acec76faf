"""The reliability diagram: how often what was given a probability was right, and how many cards were given it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from PIL import Image, ImageDraw

from scripts.ops.samplecards.canvas import SANS, load_font
from scripts.ops.scorer_fit.calibration import Scored, wilson

EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.98, 1.0)
SIZE, SCALE = (1000, 1130), 2
PLOT = (110, 90, 950, 930)
INK, FAINT, MARK, SPREAD = (30, 30, 34), (214, 214, 218), (32, 92, 160), (122, 164, 208)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bin:
    """Cards whose likeliest printing has a probability within two edges."""

    low: float
    high: float
    cards: int
    right: int
    mean: float  #: Of the probabilities.


def bins(cards: Sequence[Scored]) -> list[Bin]:
    """Return the bins that have cards, from the least probable on."""
    found = []
    for low, high in pairwise(EDGES):
        within = [card for card in cards if low <= card.probability < high or (high == card.probability == 1.0)]
        if within:
            right = sum(card.right for card in within)
            mean = sum(card.probability for card in within) / len(within)
            found.append(Bin(low=low, high=high, cards=len(within), right=right, mean=mean))
    return found


def calibration_error(cards: Sequence[Scored]) -> float:
    """Return the mean distance of probability and share right, over the bins by their cards."""
    return sum(abs(b.mean - b.right / b.cards) * b.cards for b in bins(cards)) / max(1, len(cards))


def draw_diagram(cards: Sequence[Scored], path: Path, caption: str) -> None:
    """Write the diagram as a PNG."""
    image = Image.new("RGB", (SIZE[0] * SCALE, SIZE[1] * SCALE), (255, 255, 255))
    draw = ImageDraw.Draw(image)
    _axes(draw)
    for each in bins(cards):
        x, y = _place(each.mean, each.right / each.cards)
        low, high = wilson(each.right, each.cards)
        draw.line((*_place(each.mean, low), *_place(each.mean, high)), fill=SPREAD, width=3 * SCALE)
        radius = (4 + min(14.0, each.cards**0.5 / 2)) * SCALE
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=MARK)
        label = f"{each.right}/{each.cards}"
        is_right = each.mean > 0.92
        side = -1 if is_right else 1
        _text(draw, (x + side * (radius + 6 * SCALE), y), label, "rm" if is_right else "lm")
    _text(draw, (SIZE[0] * SCALE / 2, 40 * SCALE), "Is the likeliest printing the right one?", "mm", 30)
    for row, line in enumerate(caption.splitlines()):
        _text(draw, (PLOT[0] * SCALE, (1030 + 30 * row) * SCALE), line, "lm", 20)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.resize(SIZE, Image.Resampling.LANCZOS).quantize(32).save(path, optimize=True)


def _axes(draw: ImageDraw.ImageDraw) -> None:
    for step in range(11):
        value = step / 10
        draw.line((*_place(value, 0), *_place(value, 1)), fill=FAINT, width=SCALE)
        draw.line((*_place(0, value), *_place(1, value)), fill=FAINT, width=SCALE)
        x, y = _place(value, 0)
        _text(draw, (x, y + 18 * SCALE), f"{value:g}", "mm", 18)
        x, y = _place(0, value)
        _text(draw, (x - 12 * SCALE, y), f"{value:g}", "rm", 18)
    draw.line((*_place(0, 0), *_place(1, 1)), fill=INK, width=SCALE)
    _text(draw, ((PLOT[0] + PLOT[2]) / 2 * SCALE, 985 * SCALE), "probability of the likeliest printing", "mm", 22)
    _text(draw, (PLOT[0] * SCALE, 68 * SCALE), "share that is right, with its 95 % interval", "lm", 22)


def _place(x: float, y: float) -> tuple[float, float]:
    left, top, right, bottom = PLOT
    return (left + x * (right - left)) * SCALE, (bottom - y * (bottom - top)) * SCALE


def _text(draw: ImageDraw.ImageDraw, at: tuple[float, float], text: str, anchor: str, size: int = 18) -> None:
    draw.text(at, text, fill=INK, font=load_font(SANS, size * SCALE), anchor=anchor)
