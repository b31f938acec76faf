"""Synthetic cards as pictures: sample cards drawn, then spoiled as scans, photos and re-saved uploads are.

What the real Stage C reads off them is what the rates are counted from, so that misreadings are real ones.
"""

from __future__ import annotations

import io
import random

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter

from cardpicker.stage_c.compute import compute_card_evidence, extract_all
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon, Reading
from cardpicker.stage_c.extractors.registry import EXTRACTORS
from cardpicker.stage_c.imaging.decode import NormalizedImage, decode
from cardpicker.stage_c.imaging.list_mark import draw_mark
from scripts.ops.samplecards.art import PALETTES, SCENES
from scripts.ops.samplecards.frames import draw_card
from scripts.ops.samplecards.specs import CardSpec, Printing
from scripts.ops.scorer_fit.scenarios import Scenario

DPI = 300
HEIGHT_PX = (330, 1200)
MARK_MM = (1.5, 82.6, 3.3, 85.5)
TEXT = "A sample text about choosing between two doors. / Both maps were right, on different days."
#: Readings that the scorer looks at; the rows that they were parsed from are most of the bytes.
KEPT = ("collector_line", "legal_line", "artist", "frame", "quality", "the_list_mark", "art_hash", "corners")
_LINE_KEYS = (
    "number", "set_code", "set_size", "rarity", "language", "artist_in_row", "confidence", "set_code_known",
)  # fmt: skip


def draw_picture(scenario: Scenario, art: str) -> Image.Image:
    """Return the clean card.

    Args:
        art: names the picture; equal names give equal art.
    """
    chooser = random.Random(f"art {art}")
    spec = CardSpec(
        file=art,
        name=scenario.name,
        printed="",
        style=scenario.style,
        tint=chooser.choice(sorted(PALETTES)),
        scene=chooser.choice(sorted(SCENES)),
        title=scenario.name[:24],
        type_line="Instant",
        text=TEXT,
        set_size=scenario.set_size,
        dpi=DPI,
        white_border=scenario.white_border,
        language=scenario.language,
        legal=scenario.legal,
    )
    printing = Printing(
        set_code=scenario.set_code,
        number=scenario.number,
        artist=scenario.artist,
        rarity=scenario.rarity or "common",
        year=scenario.year,
    )
    picture = draw_card(spec, printing)
    if scenario.marked:
        left, top, right, bottom = (mm * DPI / 25.4 for mm in MARK_MM)
        draw_mark(ImageDraw.Draw(picture), (left, top, right, bottom), (235, 235, 235))
    return picture


def spoil(picture: Image.Image, draw: random.Random) -> bytes:
    """Return the card as somebody's upload: smaller, softer, paler, turned, cut, noisy, compressed."""
    low, high = HEIGHT_PX
    height = round(low * (high / low) ** draw.random())
    picture = picture.resize((round(picture.width * height / picture.height), height), Image.Resampling.LANCZOS)
    if draw.random() < 0.35:
        picture = picture.filter(ImageFilter.GaussianBlur(draw.uniform(0.2, 1.1) * height / 1000))
    if draw.random() < 0.3:
        picture = ImageEnhance.Contrast(picture).enhance(draw.uniform(0.45, 1.0))
        picture = ImageEnhance.Brightness(picture).enhance(draw.uniform(0.7, 1.15))
    if draw.random() < 0.25:
        picture = picture.rotate(draw.uniform(-0.9, 0.9), Image.Resampling.BICUBIC, fillcolor=(20, 20, 20))
    if draw.random() < 0.08:
        cut = round(picture.height * draw.uniform(0.005, 0.03))
        picture = picture.crop((draw.choice((0, cut)), 0, picture.width, picture.height - cut))
    if draw.random() < 0.4:
        noise = np.random.default_rng(draw.randrange(2**32)).normal(0, draw.uniform(1, 9), (*picture.size[::-1], 1))
        picture = Image.fromarray(np.clip(np.asarray(picture, dtype=np.float32) + noise, 0, 255).astype(np.uint8))
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=draw.randrange(35, 93))
    return stream.getvalue()


def read(image: bytes, artists: tuple[str, ...]) -> dict[str, Reading]:
    """Return what Stage C reads, without the rows; nothing where the image is of no use."""
    found = compute_card_evidence(image, ComputeContext(artists=artists))
    if not isinstance(found, CardEvidence):
        return {}
    readings = {name: found.readings[name] for name in KEPT if name in found.readings}
    line = readings.get("collector_line")
    if line is not None and "error" not in line:
        readings["collector_line"] = {key: line.get(key) for key in _LINE_KEYS}
    return readings


def clean_art_hash(picture: Image.Image) -> int | None:
    """Return the hash that the catalog would have of the art."""
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=95)
    image = decode(stream.getvalue())
    if not isinstance(image, NormalizedImage):
        return None
    wanted = [extractor for extractor in EXTRACTORS if extractor.name in ("geometry", "art_hash")]
    digits = extract_all(image, ComputeContext(), Lexicon(), wanted).get("art_hash", {}).get("hash")
    return int(digits, 16) if isinstance(digits, str) else None
