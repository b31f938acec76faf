"""Saved cards and evidence ask for a dispatch. The pipeline's own writes send no signals, so it never hears its echo.

A worker that starts looks for what a killed one left behind.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models.signals import post_save
from django_q.signals import post_spawn

from cardpicker.models import Card, ImageEvidence
from cardpicker.stage_e import work
from cardpicker.stage_e.burial import bury_runs
from cardpicker.stage_e.requests import request_dispatch
from cardpicker.stage_e.work import mark_due

logger = logging.getLogger(__name__)


def connect() -> None:
    """Connect the receivers; called once, when the app is ready."""
    post_save.connect(request_for_card, sender=Card, dispatch_uid="stage-e-card")
    post_save.connect(request_for_evidence, sender=ImageEvidence, dispatch_uid="stage-e-evidence")
    post_spawn.connect(stand_back, dispatch_uid="stage-e-worker-niceness")
    post_spawn.connect(take_over, dispatch_uid="stage-e-worker")


def request_for_card(sender: type[Card], instance: Card, created: bool, raw: bool = False, **kwargs: Any) -> None:
    """Ask for a dispatch; a trigger of the database has marked the card due already, if it is."""
    if not raw:
        request_dispatch("card-created" if created else "card-saved", instance.pk)


def request_for_evidence(
    sender: type[ImageEvidence], instance: ImageEvidence, raw: bool = False, **kwargs: Any
) -> None:
    """Evidence that somebody else than the pipeline wrote is judged anew."""
    if not raw:
        mark_due([instance.card_id], "evidence-changed")
        request_dispatch("evidence-saved", instance.card_id)


def stand_back(sender: object, **kwargs: Any) -> None:
    """Let whatever answers people go before a worker, though not as far as before its extraction processes."""
    os.nice(max(0, settings.STAGE_C.niceness // 2 - os.nice(0)))


def take_over(sender: object, **kwargs: Any) -> None:
    """Close the runs of killed workers and ask for their cards: no other request may come for minutes."""
    if not settings.STAGE_E.streaming_enabled:
        return
    try:
        work.expire(settings.STAGE_E.max_attempts, owners=bury_runs())
        if work.is_due():
            request_dispatch("worker-started")
    except DatabaseError as error:
        # A worker that starts while the database is away must live on until it is back.
        logger.warning("a worker could not look for interrupted runs: %s", error)
    finally:
        connection.close()
