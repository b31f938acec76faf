"""The operating envelope: bars within which dispatch may run, and trips that stop it until a person looks.

Judging is pure; only storing and acknowledging a trip touch the database. Nothing here resumes by itself: it is the
acknowledgment, by a person and with a note, that asks for the next dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from cardpicker.catalogue.text import clean_text
from cardpicker.models import EnvelopeBar, EnvelopeTrip
from cardpicker.stage_e import requests, work
from cardpicker.stage_e.fetch_window import FetchWindow
from cardpicker.stage_e.settings import StageESettings
from cardpicker.stage_e.vitals import Vitals, host_name

#: The bars that gate only the host on which they were breached; the others gate every host.
HOST_BARS = frozenset({EnvelopeBar.HOST_LOAD, EnvelopeBar.RSS})


class TripNotOpenError(ValueError):
    """The trip to acknowledge does not exist or has been acknowledged already."""


class NoteMissingError(ValueError):
    """A trip cannot be acknowledged, nor dispatch paused, without a note and a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A bar that was passed, with what was measured and what is allowed."""

    bar: EnvelopeBar
    value: float
    ceiling: float
    detail: str


def judge(vitals: Vitals, window: FetchWindow, settings: StageESettings) -> Breach | None:
    """Return the first bar that is breached, in the bars' order; a lockout and a pause are trips from the start."""
    if vitals.load_1m is not None and vitals.load_1m > settings.host_load_ceiling:
        return Breach(
            bar=EnvelopeBar.HOST_LOAD,
            value=vitals.load_1m,
            ceiling=settings.host_load_ceiling,
            detail=f"1-minute load {vitals.load_1m:.2f} is above {settings.host_load_ceiling:g}",
        )
    return judge_memory(vitals, settings) or judge_fetches(window, settings)


def judge_memory(vitals: Vitals, settings: StageESettings) -> Breach | None:
    """Return a breach when any process of the dispatch is larger than allowed."""
    if vitals.largest_rss_mb <= settings.rss_mb_ceiling:
        return None
    return Breach(
        bar=EnvelopeBar.RSS,
        value=vitals.largest_rss_mb,
        ceiling=settings.rss_mb_ceiling,
        detail=f"a process of the dispatch holds {vitals.largest_rss_mb:.0f} MB, above {settings.rss_mb_ceiling} MB",
    )


def judge_fetches(window: FetchWindow, settings: StageESettings) -> Breach | None:
    """Return a breach when too many of the latest fetches failed; too few fetches prove nothing."""
    if window.fetches < min(settings.fetch_failure_minimum, settings.fetch_failure_window):
        return None
    rate = window.failures / window.fetches
    if rate <= settings.fetch_failure_rate_ceiling:
        return None
    return Breach(
        bar=EnvelopeBar.FETCH_FAILURE_RATE,
        value=rate,
        ceiling=settings.fetch_failure_rate_ceiling,
        detail=f"{window.failures} of the last {window.fetches} fetches failed",
    )


def open_trip() -> EnvelopeTrip | None:
    """Return the trip that gates this host now, the first by the bars' order, or None."""
    trips = EnvelopeTrip.objects.filter(acknowledged_at__isnull=True, host__in=["", host_name()])
    order = list(EnvelopeBar)
    return min(trips, key=lambda trip: order.index(EnvelopeBar(trip.bar)), default=None)


def store_trip(breach: Breach, *, run_id: str) -> EnvelopeTrip:
    """Open a trip for ``breach``, or return the one that is open already."""
    host = host_name() if breach.bar in HOST_BARS else ""
    return _open(
        EnvelopeTrip(
            bar=breach.bar,
            host=host,
            value=breach.value,
            ceiling=breach.ceiling,
            detail=breach.detail[:500],
            run_id=run_id[:64],
        )
    )


def trip_lockout(detail: str, *, run_id: str) -> EnvelopeTrip:
    """Open the trip that stops every host: the image host refuses us."""
    return _open(
        EnvelopeTrip(
            bar=EnvelopeBar.GOOGLE_LOCKOUT, value=1, ceiling=0, detail=clean_text(detail, 500), run_id=run_id[:64]
        )
    )


def pause(who: str, note: str) -> EnvelopeTrip:
    """Stop dispatch everywhere until the pause is acknowledged.

    Raises:
        NoteMissingError: ``who`` or ``note`` is blank.
    """
    who, note = _signed(who, note)
    return _open(EnvelopeTrip(bar=EnvelopeBar.OPERATOR_PAUSE, detail=note[:500], opened_by=who))


def acknowledge_trip(trip_id: int, note: str, who: str) -> EnvelopeTrip:
    """Close an open trip, and ask for what is due; the only way in which one is ever closed.

    Raises:
        NoteMissingError: ``who`` or ``note`` is blank.
        TripNotOpenError: there is no such open trip.
    """
    who, note = _signed(who, note)
    with transaction.atomic():
        closed = EnvelopeTrip.objects.filter(pk=trip_id, acknowledged_at__isnull=True).update(
            acknowledged_at=Now(), acknowledged_by=who, note=note
        )
        # The requests made while it was open found it and ended; without this one, work would wait for the sweep.
        if closed and work.is_due():
            requests.request_dispatch("acknowledged")
    if not closed:
        known = EnvelopeTrip.objects.filter(pk=trip_id).first()
        if known is None:
            raise TripNotOpenError(f"There is no trip {trip_id}.")
        raise TripNotOpenError(
            f"Trip {trip_id} was acknowledged by {known.acknowledged_by} on {known.acknowledged_at:%Y-%m-%d %H:%M} UTC."
        )
    return EnvelopeTrip.objects.get(pk=trip_id)


def _signed(who: str, note: str) -> tuple[str, str]:
    who = clean_text(who, 150)
    # A note keeps its lines; what a column cannot hold is taken out.
    note = note.replace("\0", "").encode("utf-8", "ignore").decode().strip()
    if not note:
        raise NoteMissingError("Write a note: what you found, for whoever reads the trip later.")
    if not who:
        raise NoteMissingError("Say who acknowledges.")
    return who, note


def _open(trip: EnvelopeTrip) -> EnvelopeTrip:
    try:
        with transaction.atomic():
            trip.save(force_insert=True)
    except IntegrityError:
        standing = EnvelopeTrip.objects.filter(bar=trip.bar, host=trip.host, acknowledged_at__isnull=True).first()
        if standing is not None:
            return standing
        # It was acknowledged between the two statements: the breach is newer than that.
        trip.save(force_insert=True)
    return trip
