"""What must hold once everything is settled, whatever was done before. Each check returns what is violated, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from django.db import OperationalError, connection
from django.db.models import Q

from cardpicker.models import CardPrintingTag, CardWork, EnvelopeTrip, ImageEvidence, PilotRunLedger, RunStatus
from cardpicker.stage_e import ledger
from scripts.ops.drill import audit, processes
from scripts.ops.drill.catalog import Catalog, Result, results
from scripts.ops.drill.rig import Rig

_SLOTS = """
SELECT activity.client_port, locks.objid::int FROM pg_locks AS locks JOIN pg_stat_activity AS activity USING (pid)
WHERE locks.locktype = 'advisory' AND locks.objsubid = 2 AND locks.granted AND activity.application_name LIKE 'cardpicker-%%'
  AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


def is_settled() -> bool:
    """Whether no card is due or leased and no run is open; False while the database is away."""
    try:
        idle = Q(due_at__isnull=True, lease_owner__isnull=True)
        if CardWork.objects.exclude(idle).exists():
            return False
        return not PilotRunLedger.objects.filter(status=RunStatus.RUNNING).exists()
    except OperationalError:
        connection.close()
        return False


def unsettled() -> str:
    """Return in words what is not settled."""
    work = Counter(row.state for row in CardWork.objects.exclude(due_at__isnull=True, lease_owner__isnull=True))
    later = CardWork.objects.filter(due_at__isnull=False).order_by("-due_at").values_list("due_at", "last_outcome")[:1]
    runs = [str(run) for run in PilotRunLedger.objects.filter(status=RunStatus.RUNNING)]
    return f"work {dict(work)}, last due {[(str(at), what) for at, what in later]}, running {runs}"


def momentary_lies() -> Iterator[str]:
    """Yield what is not true of owners at this moment; a lie may stand for a moment, until somebody finds it."""
    running = PilotRunLedger.objects.filter(status=RunStatus.RUNNING)
    for run in running:
        owner = ledger.Owner(host=run.host, pid=run.pid, process_started_at=run.process_started_at)
        if not ledger.lives(owner):
            yield f"run {run.run_id} is RUNNING although process {run.pid} is dead"
    orphaned = CardWork.objects.filter(lease_owner__isnull=False).exclude(lease_owner__in=running.values("batch_id"))
    if count := orphaned.count():
        yield f"{count} cards are leased by batches that do not run"


def slots_held_by_nobody(rig: Rig) -> Iterator[str]:
    """Yield the slots whose sessions belong to no living process of the drill."""
    with connection.cursor() as cursor:
        cursor.execute(_SLOTS)
        held = cursor.fetchall()
    ports = {port for p in processes.members(rig.sessions) for port in processes.local_ports(p.pid)} if held else set()
    yield from (f"slot {slot} is held by nobody" for port, slot in held if port not in ports)


def orphans(rig: Rig) -> Iterator[str]:
    """Yield the processes that outlived who started them."""
    known = set() if not rig.cron.pid else {p.pid for p in processes.members([rig.cron.pid])}
    for process in processes.orphans(rig.cluster.pid, rig.sessions):
        if process.pid not in known:
            yield f"process {process.pid} is an orphan"


def open_trips() -> Iterator[str]:
    """Yield the trips that are open: no fault of the drill is a breach."""
    yield from (f"{trip}: {trip.detail}" for trip in EnvelopeTrip.objects.filter(acknowledged_at__isnull=True))


def wrong_cards(card_ids: Collection[int], catalog: Catalog, expected: Mapping[str, Result]) -> Iterator[str]:
    """Yield the cards that came to something else than the same image without a fault, or came to it more than once."""
    work = CardWork.objects.in_bulk(card_ids)
    found = results(card_ids)
    seen = audit.events(card_ids)
    for card_id in sorted(card_ids):
        if work[card_id].state != "done":
            yield f"card {card_id} is {work[card_id].state} ({work[card_id].last_outcome}: {work[card_id].last_detail})"
        elif found.get(card_id) != expected[catalog.shows[card_id]]:
            yield f"card {card_id} ({catalog.shows[card_id]}) came to {found.get(card_id)}"
        yield from _not_once(card_id, seen.get(card_id, {}))


def _not_once(card_id: int, seen: Mapping[tuple[str, str], int]) -> Iterator[str]:
    for event in (audit.READ, audit.JUDGED, audit.DONE):
        counts = [count for (what, _), count in seen.items() if what == event]
        if counts != [1]:
            yield f"card {card_id} was {event} {sum(counts)} times"


def not_unique() -> Iterator[str]:
    """Yield where there is more than one row of what there may be one of; constraints say so, and this asks."""
    votes = Counter(CardPrintingTag.objects.values_list("card_id", "anonymous_id"))
    yield from (f"{count} votes of {voter} on card {card}" for (card, voter), count in votes.items() if count > 1)
    evidence = Counter(ImageEvidence.objects.values_list("card_id", flat=True))
    yield from (f"{count} rows of evidence of card {card}" for card, count in evidence.items() if count > 1)
    open_ended = PilotRunLedger.objects.exclude(status=RunStatus.RUNNING).filter(finished_at__isnull=True)
    yield from (f"run {run} ended without an end" for run in open_ended)
