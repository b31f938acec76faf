"""Text from outside made fit for a column: what PostgreSQL and terminals cannot hold is taken out."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def clean_text(text: str, max_length: int) -> str:
    """Return ``text`` without control characters and lone surrogates, white space collapsed, cut to ``max_length``."""
    head = text[: 4 * max_length]
    if head.isprintable():
        return " ".join(head.split())[:max_length].rstrip()
    return " ".join(_UNSTORABLE.sub(" ", head).split())[:max_length].rstrip()
