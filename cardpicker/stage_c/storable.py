"""Values as PostgreSQL can hold them: text without NUL and lone surrogates, JSON without what only Python knows."""

from __future__ import annotations

import json
import math

from cardpicker.stage_c.evidence import JSONValue


def clean_text(text: str) -> str:
    """Return text that PostgreSQL can hold: without NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")


def clean_json(value: object) -> JSONValue:
    """Return a value that a JSON column can hold; what is no JSON value becomes its text, NaN and infinity null."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    return clean_text(str(value))


def json_text(value: object) -> str:
    """Return a value's JSON, cleaned where it needs to be: to look at the text is faster than to walk the value."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(clean_json(value))
    # NUL and surrogates are escaped here; a pair that is one character takes the longer way for nothing.
    if "\\u0000" in text or "\\ud" in text:
        return json.dumps(clean_json(value))
    return text
