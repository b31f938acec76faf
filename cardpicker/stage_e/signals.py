"""Saved cards and evidence ask for a dispatch. The pipeline's own writes send no signals, so it never hears its echo."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save

from cardpicker.models import Card, ImageEvidence
from cardpicker.stage_e.requests import request_dispatch
from cardpicker.stage_e.work import mark_due


def connect() -> None:
    """Connect the receivers; called once, when the app is ready."""
    post_save.connect(request_for_card, sender=Card, dispatch_uid="stage-e-card")
    post_save.connect(request_for_evidence, sender=ImageEvidence, dispatch_uid="stage-e-evidence")


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
