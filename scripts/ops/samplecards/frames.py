"""The card frames of three decades, simplified: bars, boxes and where the facts stand in small print."""

from __future__ import annotations

import random

from PIL import Image, ImageDraw, ImageOps

from .art import PALETTES, Color, fractal_noise, paint
from .canvas import SANS, SERIF, SERIF_BOLD, SERIF_ITALIC, TRIM_MM, Canvas, Rect
from .specs import CardSpec, Printing, Style

BLACK: Color = (14, 13, 12)
WHITE: Color = (242, 240, 234)
MANA: dict[str, Color] = {
    "W": (250, 244, 208),
    "U": (150, 204, 238),
    "B": (176, 166, 168),
    "R": (242, 150, 116),
    "G": (146, 204, 152),
}
RARITIES: dict[str, Color] = {"common": (30, 30, 32), "uncommon": (150, 168, 180), "rare": (200, 164, 76)}
FIRST_LLC_YEAR = 2009  #: From then on the company signs as LLC.
DEFAULT_RARITY: Color = (206, 98, 44)


def draw_card(spec: CardSpec, printing: Printing) -> Image.Image:
    """Return the upright card as an RGB image, or RGBA where its corners are rounded off."""
    border = WHITE if spec.white_border else BLACK
    canvas = Canvas.blank(
        dpi=spec.dpi, bleed=spec.bleed, color=(233, 231, 226) if spec.style is Style.BLANK else border
    )
    if spec.style is not Style.BLANK:
        body = _old_body if spec.style in (Style.ARTIST_1993, Style.FOOTER_1997) else _modern_body
        body(canvas, spec, printing)
        _FOOTERS[spec.style](canvas, spec, printing)
    return _round_corners(canvas) if spec.rounded_corners else canvas.image


def _frame_texture(spec: CardSpec) -> Image.Image:
    dark, middle, light, _ = PALETTES[spec.tint]
    noise = fractal_noise((500, 640), random.Random(f"frame {spec.file}"), cells=9)
    return ImageOps.colorize(ImageOps.autocontrast(noise), _mix(dark, middle, 0.85), _mix(middle, light, 0.4))


def _mix(first: Color, second: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def _modern_body(canvas: Canvas, spec: CardSpec, printing: Printing) -> None:
    dark, middle, light, _ = PALETTES[spec.tint]
    bar, paper = _mix(light, WHITE, 0.6), _mix(light, WHITE, 0.75)
    frame: Rect = (2.7, 2.7, 60.3, 81.7) if spec.style.is_modern else (3.0, 3.0, 60.0, 85.2)
    bottom = 80.6 if spec.style.is_modern else 79.6
    canvas.picture(frame, _frame_texture(spec), radius_mm=2.4)
    for rect in ((3.6, 4.0, 59.4, 9.4), (3.6, 48.9, 59.4, 54.2)):
        canvas.panel(rect, bar, radius_mm=1.6, outline=dark)
    canvas.panel((4.5, 9.6, 58.5, 48.7), dark)
    canvas.picture((4.8, 9.9, 58.2, 48.4), paint(spec.scene, spec.tint, spec.file))
    canvas.panel((4.5, 54.4, 58.5, bottom), paper, outline=middle)
    canvas.fitted_text((5.4, 6.75), spec.title, SERIF_BOLD, 4.0, 50.0 - 3.8 * len(spec.cost))
    canvas.fitted_text((5.4, 51.6), spec.type_line, SERIF_BOLD, 3.2, 46.0)
    _cost(canvas, spec.cost, 57.0, 6.7)
    _set_symbol(canvas, printing, (56.0, 51.55))
    _rules(canvas, spec, (6.2, 56.2, 56.8, bottom))
    if spec.power:
        canvas.panel((47.6, 78.2, 59.6, 83.0), bar, radius_mm=1.3, outline=dark)
        canvas.text((53.6, 80.6), spec.power, SERIF_BOLD, 3.9, BLACK, anchor="mm")


def _old_body(canvas: Canvas, spec: CardSpec, printing: Printing) -> None:
    dark, middle, light, _ = PALETTES[spec.tint]
    canvas.picture((3.2, 3.2, 59.8, 84.8), _frame_texture(spec))
    canvas.panel((6.3, 8.3, 56.7, 48.1), _mix(dark, BLACK, 0.5))
    canvas.picture((6.7, 8.7, 56.3, 47.7), paint(spec.scene, spec.tint, spec.file))
    canvas.panel((6.3, 52.2, 56.7, 79.2), _mix(middle, light, 0.72), outline=_mix(dark, BLACK, 0.5))
    _engraved(canvas, (5.6, 7.1), spec.title, 4.0)
    _engraved(canvas, (5.9, 51.2), spec.type_line, 3.1)
    _cost(canvas, spec.cost, 56.6, 5.7)
    if spec.style is Style.FOOTER_1997:
        _set_symbol(canvas, printing, (55.0, 50.1))
    _rules(canvas, spec, (8.4, 55.4, 54.8, 79.0))
    if spec.power:
        _engraved(canvas, (56.4, 83.2), spec.power, 4.2, anchor="rs")


def _engraved(canvas: Canvas, at_mm: tuple[float, float], text: str, em_mm: float, anchor: str = "ls") -> None:
    shadow_mm = em_mm * 0.03
    canvas.text((at_mm[0] + shadow_mm, at_mm[1] + shadow_mm), text, SERIF_BOLD, em_mm, (10, 10, 10), anchor)
    canvas.text(at_mm, text, SERIF_BOLD, em_mm, (240, 238, 230), anchor)


def _cost(canvas: Canvas, cost: str, right_mm: float, y_mm: float) -> None:
    for index, symbol in enumerate(reversed(cost)):
        center = (right_mm - 3.6 * index, y_mm)
        canvas.disc(center, 1.65, MANA.get(symbol, (204, 196, 190)))
        canvas.text(center, symbol, SERIF_BOLD, 2.9, BLACK, anchor="mm")


def _set_symbol(canvas: Canvas, printing: Printing, center_mm: tuple[float, float]) -> None:
    """Draw a star of the rarity's color whose points the set code decides."""
    rng = random.Random(f"set {printing.set_code}")
    x, y = center_mm
    color = RARITIES.get(printing.rarity, DEFAULT_RARITY)
    for scale, fill in ((1.0, BLACK), (0.78, color)):
        reach, waist = 1.75 * scale, (0.7 + rng.random() * 0.5) * scale
        corners = [(x, y - reach), (x + waist, y - waist), (x + reach, y), (x + waist, y + waist)]
        corners += [(x, y + reach), (x - waist, y + waist), (x - reach, y), (x - waist, y - waist)]
        canvas.polygon(corners, fill)


def _rules(canvas: Canvas, spec: CardSpec, rect: Rect) -> None:
    rules, _, flavor = spec.text.partition(" / ")
    y = canvas.paragraph(rect, rules, SERIF, 3.15)
    if flavor:
        canvas.paragraph((rect[0], y + 0.6, *rect[2:]), flavor, SERIF_ITALIC, 3.0)


def _line_2015(canvas: Canvas, spec: CardSpec, printing: Printing) -> None:
    letter = spec.rarity or printing.rarity[0].upper()
    if spec.style is Style.LINE_2023:
        first = f"{letter}  {int(printing.number):04d}"
    else:
        first = f"{int(printing.number):03d}/{spec.set_size:03d}  {letter}"
    second = f"{printing.set_code.upper()} • {spec.language}"
    canvas.text((4.2, 83.7), first, SANS, 1.62, WHITE)
    canvas.text((4.2, 85.5), second, SANS, 1.62, WHITE)
    if printing.artist:
        x = 4.2 + canvas.text_width_mm(second, SANS, 1.62) + 0.9
        canvas.polygon([(x, 85.5), (x + 0.5, 84.7), (x + 2.0, 84.35), (x + 1.0, 85.3)], WHITE)
        canvas.text((x + 2.4, 85.5), printing.artist.upper(), SANS, 1.62, WHITE)
    legal = spec.legal or f"™ & © {printing.year} Wizards of the Coast"
    canvas.text((58.8, 85.5 if spec.power else 83.7), legal, SERIF_BOLD, 1.6, WHITE, anchor="rs")


def _footer_2003(canvas: Canvas, spec: CardSpec, printing: Printing) -> None:
    company = "Wizards of the Coast LLC" if printing.year >= FIRST_LLC_YEAR else "Wizards of the Coast, Inc."
    legal = f"™ & © 1993\N{EN DASH}{printing.year} {company} {printing.number}/{spec.set_size}"
    ink = WHITE if spec.tint in ("black", "red") else BLACK
    x, anchor = (31.5, "ms") if spec.centered_footer else (7.6, "ls")
    if not spec.centered_footer:
        canvas.polygon([(4.6, 82.4), (5.4, 81.3), (7.3, 80.9), (6.1, 82.1)], ink)
    canvas.text((x, 82.3), printing.artist or "", SERIF_BOLD, 2.3, ink, anchor)
    canvas.text((x if spec.centered_footer else 4.9, 84.5), legal, SERIF_BOLD, 1.75, ink, anchor)


def _footer_1997(canvas: Canvas, spec: CardSpec, printing: Printing) -> None:
    legal = f"© {printing.year} Wizards of the Coast, Inc. {printing.number}/{spec.set_size}"
    _engraved(canvas, (31.5, 81.9), f"Illus. {printing.artist}", 2.5, anchor="ms")
    canvas.text((31.5, 84.0), legal, SERIF_BOLD, 1.75, WHITE, anchor="ms")


def _artist_1993(canvas: Canvas, spec: CardSpec, printing: Printing) -> None:
    _engraved(canvas, (6.3, 82.0), f"Illus. © {printing.artist}", 2.6)


_FOOTERS = {
    Style.LINE_2015: _line_2015,
    Style.LINE_2023: _line_2015,
    Style.FOOTER_2003: _footer_2003,
    Style.FOOTER_1997: _footer_1997,
    Style.ARTIST_1993: _artist_1993,
}


def _round_corners(canvas: Canvas) -> Image.Image:
    mask = Image.new("L", canvas.image.size, 0)
    ImageDraw.Draw(mask).rounded_rectangle(canvas.box((0, 0, *TRIM_MM)), 3.0 * canvas.px_per_mm, fill=255)
    rounded = canvas.image.convert("RGBA")
    rounded.putalpha(mask)
    return rounded
