"""A card to draw on in millimeters: the origin is the trim's top left, the bleed lies outside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from .art import Color

TRIM_MM = (63.0, 88.0)
BLEED_MM = 3.175
FONT_FOLDER = Path(__file__).resolve().parents[3] / "sample_catalogue" / "fonts"

SANS = "BarlowSemiCondensed-SemiBold"
SERIF = "EBGaramond-Regular"
SERIF_BOLD = "EBGaramond-SemiBold"
SERIF_ITALIC = "EBGaramond-Italic"

Rect = tuple[float, float, float, float]  # left, top, right, bottom in mm


@cache
def load_font(name: str, size_px: float) -> ImageFont.FreeTypeFont:
    """Return a font of the catalog; basic layout, since what Raqm does depends on the host."""
    return ImageFont.truetype(FONT_FOLDER / f"{name}.ttf", size_px, layout_engine=ImageFont.Layout.BASIC)


@dataclass(frozen=True, slots=True)
class Canvas:
    """An RGB image with drawing in millimeters."""

    image: Image.Image
    px_per_mm: float
    bleed_mm: float

    @classmethod
    def blank(cls, *, dpi: int, bleed: bool, color: Color) -> Canvas:
        """Return an empty card at ``dpi`` filled with ``color``, bleed included."""
        px_per_mm, bleed_mm = dpi / 25.4, BLEED_MM if bleed else 0.0
        width, height = (round((side + 2 * bleed_mm) * px_per_mm) for side in TRIM_MM)
        return cls(Image.new("RGB", (width, height), color), px_per_mm, bleed_mm)

    def point(self, x_mm: float, y_mm: float) -> tuple[int, int]:
        """Return the pixel of a place on the card."""
        return round((x_mm + self.bleed_mm) * self.px_per_mm), round((y_mm + self.bleed_mm) * self.px_per_mm)

    def box(self, rect: Rect) -> tuple[int, int, int, int]:
        """Return the pixels of a rectangle on the card."""
        return *self.point(*rect[:2]), *self.point(*rect[2:])

    def panel(self, rect: Rect, fill: Color, *, radius_mm: float = 0.0, outline: Color | None = None) -> None:
        """Fill a rectangle, rounded if asked, with a thin outline."""
        line = max(1, round(0.25 * self.px_per_mm)) if outline else 0
        ImageDraw.Draw(self.image).rounded_rectangle(
            self.box(rect), radius_mm * self.px_per_mm, fill=fill, outline=outline, width=line
        )

    def picture(self, rect: Rect, picture: Image.Image, *, radius_mm: float = 0.0) -> None:
        """Fit a picture into a rectangle, rounded if asked."""
        left, top, right, bottom = self.box(rect)
        fitted = picture.resize((right - left, bottom - top), Image.Resampling.LANCZOS)
        mask = Image.new("L", fitted.size, 0)
        ImageDraw.Draw(mask).rounded_rectangle(
            (0, 0, fitted.width - 1, fitted.height - 1), radius_mm * self.px_per_mm, fill=255
        )
        self.image.paste(fitted, (left, top), mask)

    def polygon(self, corners_mm: list[tuple[float, float]], fill: Color) -> None:
        """Fill a polygon."""
        ImageDraw.Draw(self.image).polygon([self.point(*corner) for corner in corners_mm], fill=fill)

    def disc(self, center_mm: tuple[float, float], radius_mm: float, fill: Color) -> None:
        """Fill a circle with a dark rim."""
        x, y = center_mm
        rect = (x - radius_mm, y - radius_mm, x + radius_mm, y + radius_mm)
        ImageDraw.Draw(self.image).ellipse(self.box(rect), fill=fill, outline=(20, 20, 20))

    def text_width_mm(self, text: str, font: str, em_mm: float) -> float:
        """Return how wide a line of text would be."""
        return load_font(font, em_mm * self.px_per_mm).getlength(text) / self.px_per_mm

    def text(
        self, at_mm: tuple[float, float], text: str, font: str, em_mm: float, fill: Color, anchor: str = "ls"
    ) -> None:
        """Draw one line; ``at_mm`` and ``anchor`` as in Pillow, the default being left end of the baseline."""
        face = load_font(font, em_mm * self.px_per_mm)
        ImageDraw.Draw(self.image).text(self.point(*at_mm), text, fill=fill, font=face, anchor=anchor)

    def fitted_text(self, at_mm: tuple[float, float], text: str, font: str, em_mm: float, width_mm: float) -> None:
        """Draw one black line, smaller where it would be wider than ``width_mm``."""
        width = self.text_width_mm(text, font, em_mm)
        self.text(at_mm, text, font, em_mm * min(1.0, width_mm / width), (16, 16, 16), anchor="lm")

    def paragraph(self, rect: Rect, text: str, font: str, em_mm: float) -> float:
        """Wrap text into a rectangle from its top and return where the next paragraph may start, in mm."""
        left, y, right, _ = rect
        line = ""
        for word in [*text.split(), ""]:
            longer = f"{line} {word}".strip()
            if word and self.text_width_mm(longer, font, em_mm) <= right - left:
                line = longer
                continue
            self.text((left, y), line, font, em_mm, (16, 16, 16), anchor="la")
            y, line = y + em_mm * 1.12, word
        return y + em_mm * 0.4
