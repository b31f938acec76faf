"""One shared rate per destination: permits are moments on the database's clock, handed out in one statement.

All processes and hosts draw from the same row, so that the rate holds however many of them fetch. Pressure widens the
interval by a factor, which falls back in a straight line; after a lockout one probe at a time is let through. A permit
that is not used is lost; nothing here waits, but for the row's lock, and not for long.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from cardpicker.models import FetchBudget

GOOGLE_IMAGE = "GOOGLE_IMAGE"  #: The destination of every image that comes from Google, through the CDN or not.
SCRYFALL_IMAGE = "SCRYFALL_IMAGE"
SCRYFALL_API = "SCRYFALL_API"

MAX_HOLD_S = 3_600.0
#: With one image in a hundred answered by pressure at the full rate, the one about makes up for the other.
WIDEN_BY, MAX_WIDENING = 1.3, 8.0
#: From the widest to none in about six minutes.
DECAY_PER_S = 0.02
#: The answers to what was in flight when the pressure began are one pressure.
ONE_PRESSURE_S = 3.0
PROBE_EVERY_S = 60.0
#: No queue of permits is longer: a clock that was set back left the row in a future that may be hours away.
MAX_AHEAD_S = 2 * MAX_HOLD_S
LOCK_TIMEOUT_MS = 3_000

_NOW = f"GREATEST(1, widening - {DECAY_PER_S} * GREATEST(0, EXTRACT(EPOCH FROM clock_timestamp() - widened_at)))"
# The time-out is of this statement only, and is set before the row is locked, since the join needs it.
_PATIENCE = f"(SELECT set_config('lock_timeout', '{LOCK_TIMEOUT_MS}', true)) AS patience"
_TAKE = f"""
UPDATE cardpicker_fetchbudget
SET next_permit_at = GREATEST(next_permit_at, clock_timestamp())
    + make_interval(secs => CASE WHEN is_probing THEN {PROBE_EVERY_S} ELSE %(count)s * %(interval_s)s * {_NOW} END)
FROM {_PATIENCE}
WHERE destination = %(destination)s AND next_permit_at <= clock_timestamp() + make_interval(secs => %(max_wait_s)s)
RETURNING EXTRACT(EPOCH FROM next_permit_at - clock_timestamp()), is_probing, {_NOW}
"""
_LOOK = """
SELECT EXTRACT(EPOCH FROM next_permit_at - clock_timestamp()) FROM cardpicker_fetchbudget WHERE destination = %s
"""
_BRING_BACK = """
UPDATE cardpicker_fetchbudget SET next_permit_at = clock_timestamp()
WHERE destination = %s AND next_permit_at > clock_timestamp() + make_interval(secs => %s)
"""
_SLOW_DOWN = f"""
UPDATE cardpicker_fetchbudget
SET next_permit_at = GREATEST(next_permit_at, clock_timestamp() + make_interval(secs => %(hold_s)s)),
    widening = LEAST({MAX_WIDENING}, {WIDEN_BY} * {_NOW}), widened_at = clock_timestamp(),
    pressed_at = clock_timestamp(), last_retry_after_s = %(asked_s)s
WHERE destination = %(destination)s
  AND NOT (widening > 1 AND widened_at > clock_timestamp() - make_interval(secs => {ONE_PRESSURE_S}))
"""
_HOLD = """
UPDATE cardpicker_fetchbudget
SET next_permit_at = GREATEST(next_permit_at, clock_timestamp() + make_interval(secs => %s)),
    pressed_at = clock_timestamp(), last_retry_after_s = %s
WHERE destination = %s
"""
#: Also run on the connection of the watch.
SHUT = f"""
UPDATE cardpicker_fetchbudget SET is_probing = true, widening = {MAX_WIDENING}, widened_at = clock_timestamp(),
    pressed_at = clock_timestamp(), last_retry_after_s = NULL
WHERE destination = %s
"""
_REOPEN = """
UPDATE cardpicker_fetchbudget
SET is_probing = false, widened_at = clock_timestamp(),
    next_permit_at = LEAST(next_permit_at, clock_timestamp() + make_interval(secs => %s))
WHERE destination = %s AND is_probing
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What was handed out, in seconds from now."""

    waits_s: tuple[float, ...]  #: Each permit's moment, in order; fewer than asked for when the row says so.
    widening: float = 1.0
    is_probe: bool = False  #: One permit, to find out whether a lockout is over.
    come_back_s: float = 0.0  #: Where none was handed out: when there may be one.


def take(destination: str, count: int, rate_per_s: float, *, max_wait_s: float = MAX_AHEAD_S) -> Grant:
    """Take the next ``count`` permits, unless the first of them is further away than ``max_wait_s``.

    Outside of a transaction, which would hold up everybody.

    Raises:
        DatabaseError: the row could not be had in time, or the database not at all.
    """
    interval_s = 1.0 / rate_per_s
    parameters: dict[str, str | float] = {
        "destination": destination,
        "count": count,
        "interval_s": interval_s,
        "max_wait_s": max_wait_s,
    }
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, parameters)
        row = cursor.fetchone()
        if row is None:
            cursor.execute(_LOOK, [destination])
            queue = cursor.fetchone()
            if queue is not None and max_wait_s < float(queue[0]) <= MAX_AHEAD_S:
                return Grant(waits_s=(), come_back_s=float(queue[0]))
            _create(destination)
            cursor.execute(_BRING_BACK, [destination, MAX_AHEAD_S])
            cursor.execute(_TAKE, parameters)
            row = cursor.fetchone()
    if row is None:
        return Grant(waits_s=(), come_back_s=max_wait_s)
    end_s, is_probe, widening = float(row[0]), bool(row[1]), float(row[2])
    if is_probe:
        return Grant(waits_s=(max(0.0, end_s - PROBE_EVERY_S),), widening=widening, is_probe=True)
    step_s = interval_s * widening
    waits_s = tuple(max(0.0, end_s - (count - index) * step_s) for index in range(count))
    return Grant(waits_s=waits_s, widening=widening)


def take_permits(destination: str, count: int, rate_per_s: float) -> list[float]:
    """Take the next ``count`` permits, however far away they are; a single one while a lockout is probed.

    Returns:
        Seconds from now until each permit's moment, in order, at least 0.
    """
    return list(take(destination, count, rate_per_s).waits_s) if count > 0 else []


def slow_down(destination: str, retry_after_s: float | None) -> None:
    """Widen everybody's interval, and let nobody fetch for as long as the destination asked, at most an hour."""
    _create(destination)
    hold_s = min(max(0.0, retry_after_s or 0.0), MAX_HOLD_S)
    with connection.cursor() as cursor:
        cursor.execute(_SLOW_DOWN, {"destination": destination, "hold_s": hold_s, "asked_s": retry_after_s})
        if not cursor.rowcount and hold_s:
            cursor.execute(_HOLD, [hold_s, retry_after_s, destination])


def shut(destination: str) -> None:
    """Let through one fetch a minute until one succeeds: the destination has locked us out."""
    _create(destination)
    with connection.cursor() as cursor:
        cursor.execute(SHUT, [destination])


def reopen(destination: str, rate_per_s: float) -> None:
    """Begin a slow ramp: the probe has succeeded."""
    with connection.cursor() as cursor:
        cursor.execute(_REOPEN, [MAX_WIDENING / rate_per_s, destination])


def _create(destination: str) -> None:
    FetchBudget.objects.bulk_create([FetchBudget(destination=destination)], ignore_conflicts=True)
