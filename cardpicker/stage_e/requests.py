"""Asking for a dispatch. Cards are due because the database says so; a task only says that somebody should look.

Requests coalesce: at most one a transaction, at most twice the slots in the queue, whatever the number of saves.
"""

from __future__ import annotations

import functools
import logging

from django.conf import settings
from django.db import connection, transaction
from django_q.conf import Conf
from django_q.models import OrmQ
from django_q.tasks import async_task

logger = logging.getLogger(__name__)

DISPATCH_TASK = "cardpicker.stage_e.dispatch.dispatch_for_card"
_QUEUE_LOCK = 0x5E_0E


def request_dispatch(reason: str, card_id: int | None = None) -> None:
    """Ask, once the transaction has committed, that due cards be dispatched, ``card_id`` among the first."""
    if not settings.STAGE_E.streaming_enabled or _is_requested():
        return
    transaction.on_commit(functools.partial(_enqueue, card_id, reason))


def queued_requests() -> int:
    """Return how many dispatches the queue holds, the running ones included."""
    return int(OrmQ.objects.filter(key=Conf.CLUSTER_NAME).count())


def _is_requested() -> bool:
    # Django drops the callbacks of a savepoint that is rolled back, so the list itself is asked, not a flag beside it.
    return any(getattr(entry[1], "func", None) is _enqueue for entry in connection.run_on_commit)


def _enqueue(card_id: int | None, reason: str) -> None:
    most = 2 * settings.STAGE_E.slots
    if queued_requests() >= most:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_QUEUE_LOCK,))
        if queued_requests() < most:
            async_task(DISPATCH_TASK, card_id, reason, task_name=f"dispatch {reason}"[:100])
