"""The latest fetches of all processes and hosts, as the failure bar sees them.

A source of which image after image is gone was taken down or moved. That says nothing of the image host as long as other
sources' images arrive meanwhile, so it is left out. Its cards take their attempts and are set aside, each by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import Max

from cardpicker.models import EnvelopeBar, EnvelopeTrip, FetchClass, FetchOutcome

#: One file that is gone is that file's matter; as many as this of one source, with none between that arrived, are not.
MIN_GONE = 3
#: How many windows back it is looked for fetches that count, past those of lost sources.
REACH = 10

Fetch = tuple[int | None, str]  #: Source and outcome.


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchWindow:
    """The latest fetches that count."""

    fetches: int = 0
    failures: int = 0


def record_fetch(kind: FetchClass, source_id: int | None, host: str) -> None:
    """Add a fetch, by a statement that is written out: for each of them it costs less to run than to compose."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO cardpicker_fetchoutcome (outcome, source_id, host) VALUES (%s, %s, %s)",
            (kind.value, source_id, host),
        )


def read_fetch_window(size: int) -> FetchWindow:
    """Return the last ``size`` fetches since the failure rate was last acknowledged, without those of lost sources."""
    latest = FetchOutcome.objects.order_by("-at", "-pk")
    acknowledged = EnvelopeTrip.objects.filter(bar=EnvelopeBar.FETCH_FAILURE_RATE).aggregate(at=Max("acknowledged_at"))
    if acknowledged["at"] is not None:
        latest = latest.filter(at__gt=acknowledged["at"])
    fetches: Sequence[Fetch] = list(latest.values_list("source", "outcome")[:size])
    if sum(outcome == FetchClass.GONE for _, outcome in fetches) >= MIN_GONE:
        fetches = without_lost_sources(latest.values_list("source", "outcome")[: REACH * size])[:size]
    return FetchWindow(fetches=len(fetches), failures=sum(outcome != FetchClass.FETCHED for _, outcome in fetches))


def without_lost_sources(latest: Iterable[Fetch]) -> list[Fetch]:
    """Return the fetches, newest first as they come, but for each source's runs of images that were gone.

    A run ends at any other outcome of its source. It is left out if another source's image arrived since it began.
    """
    listed = list(latest)
    runs: defaultdict[int, list[int]] = defaultdict(list)
    excused: set[int] = set()  #: Sources since whose run began another one's image arrived.
    arrived: set[int | None] = set()
    left_out: set[int] = set()

    def close(source: int) -> None:
        run = runs.pop(source, [])
        if len(run) >= MIN_GONE and source in excused:
            left_out.update(run)

    for place, (source, outcome) in enumerate(listed):
        if source is not None and outcome == FetchClass.GONE:
            runs[source].append(place)
            if arrived - {source}:
                excused.add(source)
            continue
        if source is not None:
            close(source)
        if outcome == FetchClass.FETCHED:
            arrived.add(source)
    for source in list(runs):
        close(source)
    return [fetch for place, fetch in enumerate(listed) if place not in left_out]
