"""How values are shown to operators: words and units instead of codes, aligned, and always escaped.

Readings come off strangers' images, so whatever is in them passes ``format_html`` before it reaches a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

NOTHING = "–"
LONGEST_VALUE = 2000
FIRST = (
    "error",
    "number",
    "set_size",
    "set_code",
    "set_code_known",
    "rarity",
    "language",
    "artist",
    "artist_in_row",
    "copyright_year",
    "confidence",
)
LAST = ("raw", "rows")
#: Endings of names that say a unit.
UNITS = {"px": "px", "mm": "mm", "deg": "°", "ms": "ms", "s": "s", "mb": "MB", "bytes": "bytes", "dpi": "dpi"}


def when(moment: datetime | None) -> SafeString | str:
    """Show a moment in the site's time zone, to the second."""
    if moment is None:
        return NOTHING
    return format_html('<span class="when">{}</span>', timezone.localtime(moment).strftime("%Y-%m-%d %H:%M:%S"))


def state_badge(text: str, tone: str = "") -> SafeString:
    """Show a state as a colored word.

    Args:
        tone: good, busy, wait or bad; empty is neutral.
    """
    return format_html('<span class="state{}">{}</span>', f" state-{tone}" if tone else "", text)


def shortened(text: str, length: int = 100) -> str:
    """Return a text that may be long as it fits into a line."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def clipped(text: str, length: int = 160) -> SafeString | str:
    """Show the beginning of a text that may be long, the whole of it as its title."""
    if not text:
        return NOTHING
    return format_html('<span class="clip" title="{}">{}</span>', text, shortened(text, length))


def duration(seconds: float | None) -> str:
    """Show a time span in the unit that reads best."""
    if seconds is None:
        return NOTHING
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 90:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def megabytes(value: float | None) -> str:
    """Show an amount of memory that was measured in MB; 0 means it was not measured."""
    return f"{value:.0f} MB" if value else NOTHING


def byte_size(value: int | None) -> str:
    """Show the size of a file."""
    return str(filesizeformat(value)).replace("\xa0", " ") if value else NOTHING


def percent(value: float | None) -> str:
    """Show a share or a confidence of 0 to 1."""
    return NOTHING if value is None else f"{value:.0%}"


def table(values: Any, *, units: bool = True, keep_order: bool = False) -> SafeString | str:
    """Show a JSON object as an aligned table, one row a key; odd JSON is shown as the value that it is.

    Args:
        units: take the unit off the end of a key.
        keep_order: for objects of our own; the database keeps no order of keys, so what it returns is sorted.
    """
    rows = list(_rows(values, units=units, keep_order=keep_order))
    return _as_table(format_html_join("", "<tr><th>{}</th><td>{}</td></tr>", rows)) if rows else NOTHING


def tables_by_extractor(readings: Any, versions: Any, order: Sequence[str]) -> SafeString | str:
    """Show readings as one table with a heading for each extractor, its version beside its name.

    Args:
        order: names of extractors, which come first in this order; others follow.
    """
    if not isinstance(readings, Mapping):
        return table(readings)
    if not readings:
        return "Nothing was read."
    known = versions if isinstance(versions, Mapping) else {}
    parts = []
    for name in sorted(readings, key=lambda name: (order.index(name) if name in order else len(order), name)):
        version = f" (version {known[name]})" if name in known else ""
        heading = format_html('<tr><th class="extractor" colspan="2">{}{}</th></tr>', _label(str(name), False), version)
        rows = format_html_join("", "<tr><th>{}</th><td>{}</td></tr>", _rows(readings[name], units=True))
        parts.append((heading, rows))
    return _as_table(format_html_join("", "{}{}", parts))


def _as_table(rows: SafeString) -> SafeString:
    return format_html('<table class="readings"><tbody>{}</tbody></table>', rows)


def _rows(values: Any, *, units: bool, keep_order: bool = False) -> Iterator[tuple[str, SafeString | str]]:
    if not isinstance(values, Mapping):
        if values not in (None, "", []):
            yield "value", _shown(values)
        return
    for key in values if keep_order else sorted(values, key=_rank):
        yield _label(str(key), units), _shown(values[key])


def _rank(key: str) -> tuple[int, str]:
    """Order what people look for first and raw text last."""
    if key in FIRST:
        return FIRST.index(key), key
    return len(FIRST) + (key in LAST), key


def _label(key: str, units: bool) -> str:
    """Turn ``bleed_mm`` into "bleed (mm)"."""
    words = key.split("_")
    if units and len(words) > 1 and words[-1] in UNITS:
        return f"{' '.join(words[:-1])} ({UNITS[words[-1]]})"
    return " ".join(words)


def _shown(value: Any) -> SafeString | str:
    """Show one JSON value; what was not read is told apart from an empty text."""
    if value is None:
        return format_html('<span class="quiet-value">{}</span>', "nothing")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return _cut(value) if value else format_html('<span class="quiet-value">{}</span>', "empty")
    if isinstance(value, list | tuple):
        return _cut(_joined(value)) if value else format_html('<span class="quiet-value">{}</span>', "none")
    if isinstance(value, Mapping):
        return _cut("\n".join(f"{_label(str(key), True)}: {_plain(item)}" for key, item in value.items())) or "none"
    return str(value)


def _joined(values: list[Any] | tuple[Any, ...]) -> str:
    """Texts stand on lines of their own, because they hold commas."""
    separator = "\n" if any(isinstance(value, str) and " " in value for value in values) else ", "
    return separator.join(_plain(value) for value in values)


def _plain(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    return str(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}… ({len(text)} characters)"
