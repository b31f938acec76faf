"""Times as people say them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def in_words(duration: timedelta | float) -> str:
    """Return a duration in its two largest units, such as ``2 h 5 min``; under a second is ``0 s``."""
    seconds = int(duration.total_seconds() if isinstance(duration, timedelta) else duration)
    parts = []
    for size, unit in _UNITS:
        count, seconds = divmod(max(0, seconds), size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def local_time(moment: datetime | None) -> str:
    """Return a moment in the site's time zone, to the second; a dash for none."""
    return "-" if moment is None else f"{timezone.localtime(moment):%Y-%m-%d %H:%M:%S}"
