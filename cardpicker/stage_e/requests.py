"""Asking for a dispatch. Cards are due because the database says so; a task only says that somebody should look.

Requests coalesce: at most one a transaction, at most twice the slots waiting in the queue, whatever the number of saves.
"""

from __future__ import annotations

import functools
import math
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

from cardpicker.models import PilotRunLedger, RunStatus
from cardpicker.stage_e import work
from cardpicker.stage_e.vitals import host_name

DISPATCH_TASK = "cardpicker.stage_e.dispatch.dispatch_for_card"
#: Past django-q2's own time-out, a worker that still held the task is gone.
STRANDED_AFTER_S = 30
_QUEUE_LOCK = 0x5E_0E


def request_dispatch(reason: str, card_id: int | None = None) -> None:
    """Ask, once the transaction has committed, that due cards be dispatched, ``card_id`` among the first."""
    if not settings.STAGE_E.streaming_enabled or _is_requested():
        return
    # Robust: what was saved is saved and due; that nobody could be told is logged, and not the saver's error.
    transaction.on_commit(functools.partial(_enqueue, card_id, reason), robust=True)


def waiting_requests() -> int:
    """Return how many dispatches nobody has been handed yet; those that run may have looked for due cards already."""
    return int(OrmQ.objects.filter(key=Conf.CLUSTER_NAME, lock__lte=timezone.now()).count())


def drop_stranded_requests() -> int:
    """Remove requests handed to a worker that cannot be running any more; the cards they asked for are due without them."""
    # django-q2 sets a row's lock to the moment at which it will hand the row out again.
    latest = timezone.now() + timedelta(seconds=Conf.RETRY - Conf.TIMEOUT - STRANDED_AFTER_S)
    stranded = OrmQ.objects.filter(key=Conf.CLUSTER_NAME, lock__gt=timezone.now(), lock__lt=latest)
    return int(stranded.delete()[0])


def _is_requested() -> bool:
    # Django drops the callbacks of a savepoint that is rolled back, so the list itself is asked, not a flag beside it.
    return any(getattr(entry[1], "func", None) is _enqueue for entry in connection.run_on_commit)


def _enqueue(card_id: int | None, reason: str) -> None:
    most = 2 * settings.STAGE_E.slots
    if waiting_requests() >= most:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_QUEUE_LOCK,))
        waiting = waiting_requests()
        for _ in range(min(most - waiting, max(1, _missing_dispatches() - waiting))):
            async_task(DISPATCH_TASK, card_id, reason, task_name=f"dispatch {reason}"[:100])


def _missing_dispatches() -> int:
    """Return how many more dispatches could be at work on this host, for what is due: a flood fills every slot."""
    slots, batch = settings.STAGE_E.slots, settings.STAGE_E.micro_batch_size
    wanted = math.ceil(work.count_due(at_most=slots * batch) / batch)
    return wanted - PilotRunLedger.objects.filter(status=RunStatus.RUNNING, host=host_name()).count()
