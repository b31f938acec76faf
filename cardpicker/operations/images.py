"""A card's image as a thumbnail, for staff.

The file is read by the rules that the pipeline reads by, and what is sent is always a JPEG of our own making: bytes
from a source never reach the browser. Whatever cannot be shown becomes a small picture that says why.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.contrib.admin.views.decorators import staff_member_required
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe
from PIL import Image, ImageDraw, ImageFont

from cardpicker.models import Card
from cardpicker.sources.errors import SourceError
from cardpicker.sources.registry import kind_for
from cardpicker.stage_c.outcomes import Unusable

LONG_SIDE_PX = 300
PLACEHOLDER_PX = (216, 300)
JPEG_QUALITY = 82
CACHE_S = 3600


class CannotShowError(Exception):
    """A card's image cannot be shown; the message is for the placeholder and holds no path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thumbnail:
    """A picture ready to send."""

    jpeg: bytes
    is_placeholder: bool


@require_safe
@staff_member_required
@permission_required("cardpicker.view_card", raise_exception=True)
def card_thumbnail(request: HttpRequest, card_id: int) -> HttpResponse:
    """Send the thumbnail of a card."""
    card = get_object_or_404(Card.objects.select_related("source"), pk=card_id)
    etag = f'"{hashlib.sha256(f"{LONG_SIDE_PX} {card.image_version}".encode()).hexdigest()[:32]}"'
    if request.headers.get("If-None-Match") == etag:
        return _harmless(HttpResponseNotModified(), etag)
    thumbnail = make_thumbnail(card)
    response = HttpResponse(thumbnail.jpeg, content_type="image/jpeg")
    return _harmless(response, None if thumbnail.is_placeholder else etag)


def make_thumbnail(card: Card) -> Thumbnail:
    """Return the card's image made small, or a placeholder that says why there is none."""
    try:
        return Thumbnail(jpeg=_shrink(_read(local_file(card))), is_placeholder=False)
    except CannotShowError as error:
        return Thumbnail(jpeg=_placeholder(str(error)), is_placeholder=True)


def image_location(card: Card) -> str:
    """Return where the source keeps the card's image.

    Raises:
        CannotShowError: the source's kind is unknown, or the card's identifier leads outside its source.
    """
    try:
        return kind_for(card.source.kind).image_location(card.source.location, card.identifier)
    except (SourceError, LookupError, ValueError) as error:
        raise CannotShowError("its source has no such place") from error


def local_file(card: Card) -> Path:
    """Return the card's file, which lies within its source's folder also after links are followed.

    Raises:
        CannotShowError: the image is not a file of this host, or lies outside the folder.
    """
    parts = urlsplit(image_location(card))
    if parts.scheme != "file":
        raise CannotShowError("the image is not on this host")
    try:
        folder = Path(card.source.location).resolve()
        path = Path(unquote(parts.path)).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise CannotShowError("its source has no such place") from error
    if not path.is_relative_to(folder):
        raise CannotShowError("outside its source's folder")
    return path


def cdn_address(card: Card) -> str | None:
    """Return the image CDN's small picture of a card that the CDN serves, else None."""
    worker = settings.STAGE_C.image_worker_url.rstrip("/")
    if not worker:
        return None
    try:
        location = image_location(card)
    except CannotShowError:
        return None
    if not location.startswith(f"{worker}/"):
        return None
    return location.partition("?")[0].replace("/full/", "/small/", 1).replace("/large/", "/small/", 1)


def _read(path: Path) -> bytes:
    limit: int = settings.STAGE_C.fetch_max_bytes
    try:
        if not path.is_file():  # a pipe or a device would be read for ever
            raise CannotShowError("the file is missing")
        with path.open("rb") as file:
            body = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise CannotShowError("the file cannot be read") from error
    if len(body) > limit:
        raise CannotShowError("the file is too large")
    return body


def _shrink(body: bytes) -> bytes:
    from cardpicker.stage_c.imaging.decode import decode  # brings numpy, which pages without pictures do not need

    image = decode(body)
    if isinstance(image, Unusable):
        raise CannotShowError(image.kind.value.replace("-", " "))
    picture = Image.fromarray(image.rgb)
    picture.thumbnail((LONG_SIDE_PX, LONG_SIDE_PX))
    return _as_jpeg(picture)


def _placeholder(reason: str) -> bytes:
    picture = Image.new("RGB", PLACEHOLDER_PX, (235, 235, 235))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, PLACEHOLDER_PX[0] - 1, PLACEHOLDER_PX[1] - 1), outline=(170, 170, 170))
    font = ImageFont.load_default(size=18)
    words = ["cannot be shown:", *_lines(reason.encode("ascii", "replace").decode())]
    draw.multiline_text((14, 110), "\n".join(words), fill=(90, 90, 90), font=font, spacing=6)
    return _as_jpeg(picture)


def _lines(text: str, width: int = 21) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _as_jpeg(picture: Image.Image) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return stream.getvalue()


def _harmless(response: HttpResponse, etag: str | None) -> HttpResponse:
    """Say that the answer is an image and nothing else, and how long it holds; a placeholder holds for no time."""
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Security-Policy"] = "default-src 'none'"
    response["Cross-Origin-Resource-Policy"] = "same-origin"
    if etag is None:
        response["Cache-Control"] = "no-store"
    else:
        response["ETag"] = etag
        response["Cache-Control"] = f"private, max-age={CACHE_S}"
    return response
