"""What bytes that should be an image look like when they are text instead: a page, an error, a listing."""

from __future__ import annotations

import re

_SHOWN_BYTES = 200
_IMAGE_STARTS = (b"\xff\xd8\xff", b"GIF8", b"RIFF")  #: Of images cut so short that nothing else tells them from text.
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e\x80-\xff]*")
_HTML = re.compile(rb"\s*(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|script|title)\b", re.IGNORECASE | re.DOTALL)


def text_kind(body: bytes) -> str | None:
    """Return ``html``, ``json``, ``xml`` or ``text`` for bytes that are text, and None for whatever may be an image."""
    start = body[:1024].removeprefix(b"\xef\xbb\xbf")
    if start.startswith(_IMAGE_STARTS):
        return None
    if _HTML.match(start):
        return "html"
    if not _TEXT.fullmatch(start):
        return None
    stripped = start.lstrip()
    if stripped.startswith((b"{", b"[")):
        return "json"
    if stripped.startswith(b"<"):
        return "xml"
    return "text"


def shown(body: bytes) -> str:
    """Return the first bytes in printable form, for whoever has to find out what arrived."""
    text = body[:_SHOWN_BYTES].decode("utf-8", "replace")
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())
