"""How things stand: envelope, slots and holders, work by state, throughput. Read from rows at the moment of asking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings as django_settings
from django.db import connection
from django.db.models import Count, F, Min, Q, Sum
from django.utils import timezone

from cardpicker.models import CardWork, EnvelopeTrip, PilotRunLedger, RunStatus, StageEThrottleCounter
from cardpicker.stage_c.fetch.budgets import Budget, read_budgets
from cardpicker.stage_e import work
from cardpicker.stage_e.settings import StageESettings
from cardpicker.stage_e.vitals import Vitals, host_name

THROUGHPUT_MINUTES = (1, 10, 60)
LAST_RUNS = 5

_SLOTS = """
SELECT activity.pid, host(activity.client_addr), activity.backend_start, locks.objid::bigint, locks.classid::bigint
FROM pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locks.locktype = 'advisory' AND locks.objsubid = 2 AND locks.granted
  AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND activity.application_name = %s
ORDER BY activity.backend_start
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTrip:
    """A trip that halts dispatch."""

    id: int
    bar: str
    host: str  #: Empty: every host.
    opened_at: datetime
    detail: str
    gates_this_host: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotHolder:
    """A slot that is held, by the server's own account and, where known, the run's."""

    index: int
    this_host: bool
    backend_pid: int
    client: str
    held_since: datetime
    run_id: str
    host: str
    pid: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One of the last batches."""

    run_id: str
    status: str
    host: str
    started_at: datetime
    elapsed_s: float
    batch_size: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """Everything that ``stage_e_status`` shows."""

    at: datetime
    host: str
    streaming_enabled: bool
    halted: bool  #: Whether a trip gates this host.
    trips: Sequence[OpenTrip]
    load_1m: float | None
    load_ceiling: float
    slots_per_host: int
    slots: Sequence[SlotHolder]
    budgets: Sequence[Budget]  #: Of the places that images come from.
    throttled: int
    work: Mapping[str, int]
    due_by_reason: Mapping[str, int]
    oldest_due_at: datetime | None
    quarantined_by_cause: Mapping[str, int]
    cards_per_minute: Mapping[str, float]
    last_settled_at: datetime | None
    last_runs: Sequence[Run]

    def as_json(self) -> dict[str, Any]:
        """Return plain values; times in ISO 8601."""
        return _plain(asdict(self))  # type: ignore[no-any-return]

    def stalled_for(self, now: datetime) -> timedelta | None:
        """Return for how long due cards have waited without any progress; None when nothing waits or all is halted."""
        if self.halted or self.oldest_due_at is None or self.work["leased"]:
            return None
        since = max(filter(None, (self.oldest_due_at, self.last_settled_at)))
        return max(now - since, timedelta(0))


def read_status(settings: StageESettings, slot_application: str, slot_namespace: int, vitals: Vitals) -> Status:
    """Read how things stand now.

    Args:
        slot_application: the name that slot sessions bear in ``pg_stat_activity``.
        slot_namespace: the lock namespace of this host's slots.
    """
    now = timezone.now()
    waiting = Q(due_at__lte=now, lease_owner__isnull=True, quarantined_at__isnull=True)
    trips = [_trip(trip) for trip in EnvelopeTrip.objects.filter(acknowledged_at__isnull=True).order_by("opened_at")]
    counter = StageEThrottleCounter.objects.first()
    recent = PilotRunLedger.objects.order_by("-started_at")
    last = recent.exclude(status=RunStatus.RUNNING).values_list("finished_at", flat=True).first()
    return Status(
        at=now,
        host=host_name(),
        streaming_enabled=settings.streaming_enabled,
        halted=any(trip.gates_this_host for trip in trips),
        trips=trips,
        load_1m=vitals.load_1m,
        load_ceiling=settings.host_load_ceiling,
        slots_per_host=settings.slots,
        slots=_slots(slot_application, slot_namespace),
        budgets=read_budgets(django_settings.STAGE_C),
        throttled=counter.count if counter else 0,
        work=work.count_by_state(),
        due_by_reason=_counts(CardWork.objects.filter(waiting), "reason"),
        oldest_due_at=CardWork.objects.filter(waiting).aggregate(at=Min("due_at"))["at"],
        quarantined_by_cause=_counts(CardWork.objects.filter(quarantined_at__isnull=False), "last_outcome"),
        cards_per_minute={f"{minutes} min": _throughput(now, minutes) for minutes in THROUGHPUT_MINUTES},
        last_settled_at=last,
        last_runs=[_run(run) for run in recent[:LAST_RUNS]],
    )


def _trip(trip: EnvelopeTrip) -> OpenTrip:
    return OpenTrip(
        id=trip.pk,
        bar=trip.bar,
        host=trip.host,
        opened_at=trip.opened_at,
        detail=trip.detail,
        gates_this_host=trip.host in ("", host_name()),
    )


def _slots(application: str, namespace: int) -> list[SlotHolder]:
    with connection.cursor() as cursor:
        cursor.execute(_SLOTS, [application])
        rows = cursor.fetchall()
    running = list(PilotRunLedger.objects.filter(status=RunStatus.RUNNING).order_by("-started_at"))
    holders = []
    for backend_pid, client, since, index, owner_namespace in rows:
        ours = owner_namespace == namespace % 2**32
        run = next((r for r in running if r.slot == index and (r.host == host_name()) == ours), None)
        holders.append(
            SlotHolder(
                index=index,
                this_host=ours,
                backend_pid=backend_pid,
                client=client or "local",
                held_since=since,
                run_id=run.run_id if run else "",
                host=run.host if run else (host_name() if ours else ""),
                pid=run.pid if run else None,
            )
        )
    return holders


def _counts(rows: Any, field: str) -> dict[str, int]:
    return dict(rows.order_by().values_list(field).annotate(n=Count("pk")).order_by("-n", field))


def _throughput(now: datetime, minutes: int) -> float:
    finished = PilotRunLedger.objects.filter(finished_at__gte=now - timedelta(minutes=minutes))
    # A batch is bounded, so what finished lately started not long before: the index on the start serves.
    finished = finished.filter(started_at__gte=now - timedelta(minutes=minutes + 60))
    read = F("stage_c_stored") + F("stage_c_transferred") + F("stage_c_current")
    return round((finished.aggregate(n=Sum(read))["n"] or 0) / minutes, 1)


def _run(run: PilotRunLedger) -> Run:
    return Run(
        run_id=run.run_id,
        status=run.status,
        host=run.host,
        started_at=run.started_at,
        elapsed_s=run.elapsed_s,
        batch_size=run.batch_size,
        reason=run.reason,
    )


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each) for each in value]
        case datetime():
            return value.isoformat()
        case _:
            return value
