"""One shared rate per destination: permits are moments on the database's clock, handed out in one statement.

All processes and hosts draw from the same row, so that the rate holds however many of them fetch. A permit that is not
used is lost; nothing here waits.
"""

from __future__ import annotations

from django.db import connection

from cardpicker.models import FetchBudget

GOOGLE_IMAGE = "GOOGLE_IMAGE"  #: The destination of every image that comes from Google, through the CDN or not.
MAX_HOLD_S = 600.0

_TAKE = """
UPDATE cardpicker_fetchbudget
SET next_permit_at = GREATEST(next_permit_at, clock_timestamp()) + %(count)s * make_interval(secs => %(interval_s)s)
WHERE destination = %(destination)s
RETURNING EXTRACT(EPOCH FROM next_permit_at - clock_timestamp())
"""
_HOLD = """
UPDATE cardpicker_fetchbudget
SET next_permit_at = GREATEST(next_permit_at, clock_timestamp() + make_interval(secs => %s))
WHERE destination = %s
"""


def take_permits(destination: str, count: int, rate_per_s: float) -> list[float]:
    """Take the next ``count`` permits of ``destination``; outside of a transaction, which would hold up everybody.

    Returns:
        Seconds from now until each permit's moment, in order, at least 0.
    """
    if count < 1:
        return []
    interval_s = 1.0 / rate_per_s
    parameters: dict[str, str | float] = {"destination": destination, "count": count, "interval_s": interval_s}
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, parameters)
        row = cursor.fetchone()
        if row is None:
            _create(destination)
            cursor.execute(_TAKE, parameters)
            row = cursor.fetchone()
    end_s = float(row[0])
    return [max(0.0, end_s - (count - index) * interval_s) for index in range(count)]


def hold_back(destination: str, seconds: float) -> None:
    """Let nobody fetch from ``destination`` for ``seconds``, at most ten minutes, as it asked for."""
    _create(destination)
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, [min(max(0.0, seconds), MAX_HOLD_S), destination])


def _create(destination: str) -> None:
    FetchBudget.objects.bulk_create([FetchBudget(destination=destination)], ignore_conflicts=True)
