"""Evidence into the database: one transaction a card, in which the card's work is settled too.

Rows are locked card first, then work. No signal is sent: the pipeline does not hear its own writes.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from django.db import DataError, OperationalError, transaction

from cardpicker.models import ImageEvidence
from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.evidence_row import store_evidence
from cardpicker.stage_c.outcomes import CardGone, CardOutcome, Crashed, Deferred, LeaseLostError, Stored
from cardpicker.stage_c.storable import clean_text

MAX_TRIES = 4
_TRANSIENT = frozenset({"40001", "40P01"})  #: Serialization failure, deadlock.
_MAX_BIGINT = 2**63

T = TypeVar("T")


class Settle(Protocol):
    """Writes what became of a card's work, in the transaction that is open; raises LeaseLostError when it may not.

    Called again when the transaction was rolled back for a rival's sake.
    """

    def __call__(self, card_id: int, outcome: CardOutcome, /) -> None:
        """Settle the card's work."""


def persist_evidence(
    card_id: int, image_version: str, evidence: CardEvidence, *, run_id: str, elapsed_ms: int, settle: Settle
) -> CardOutcome:
    """Store what was read off the image that the card had as ``image_version``, and settle its work.

    Returns:
        Stored; CardGone when the card or that image of it is no more; Deferred when the lease is lost; Crashed when
        the database refuses the values. Nothing is stored but with Stored.
    """
    row = _row(card_id, image_version, evidence, run_id=run_id, elapsed_ms=elapsed_ms)

    def store() -> CardOutcome:
        gone = store_evidence(row)
        if gone is not None:
            return settle_gone(card_id, gone, settle)
        settle(card_id, Stored())
        return Stored()

    try:
        return settled_in_transaction(store)
    except DataError as error:
        refused = Crashed(detail=f"the database refused the evidence: {str(error).splitlines()[0][:300]}")
        return settle_alone(card_id, refused, settle)


def settle_alone(card_id: int, outcome: CardOutcome, settle: Settle) -> CardOutcome:
    """Settle a card that stores no evidence, in a transaction of its own; Deferred when the lease is lost."""

    def write() -> CardOutcome:
        if isinstance(outcome, CardGone):
            return settle_gone(card_id, outcome, settle)
        settle(card_id, outcome)
        return outcome

    return settled_in_transaction(write)


def settle_gone(card_id: int, gone: CardGone, settle: Settle) -> CardGone:
    """Settle a card that is gone; its work may be gone with it, which leaves nothing to settle."""
    with contextlib.suppress(LeaseLostError):
        settle(card_id, gone)
    return gone


def settled_in_transaction(write: Callable[[], T]) -> T | Deferred:
    """Run ``write`` in a transaction, again when rivals made it fail; a lost lease takes all of it back."""
    try:
        return _retried(write)
    except LeaseLostError as error:
        return Deferred(detail=f"lease lost: {error}"[:300])


def _row(card_id: int, image_version: str, evidence: CardEvidence, *, run_id: str, elapsed_ms: int) -> ImageEvidence:
    art_hash = evidence.art_hash
    if art_hash is not None and (art_hash == 0 or not -_MAX_BIGINT <= art_hash < _MAX_BIGINT):
        art_hash = None
    return ImageEvidence(
        card_id=card_id,
        image_version=image_version,
        image_sha256=evidence.image_sha256,
        manifest=evidence.manifest,
        extractor_versions=dict(evidence.extractor_versions),
        readings=dict(evidence.readings),
        rendition=_fitting("rendition", evidence.rendition),
        width_px=evidence.width_px,
        height_px=evidence.height_px,
        set_code=_fitting("set_code", evidence.set_code),
        collector_number=_fitting("collector_number", evidence.collector_number),
        art_hash=art_hash,
        elapsed_ms=max(0, elapsed_ms),
        run_id=run_id,
        judged_by="",
    )


def _fitting(field: str, text: str) -> str:
    """Return text for a promoted column, empty when it is too long to be what the column is for."""
    cleaned = clean_text(text)
    limit = getattr(ImageEvidence._meta.get_field(field), "max_length", None)
    return cleaned if limit is None or len(cleaned) <= limit else ""


def _retried(write: Callable[[], T]) -> T:
    for attempt in range(1, MAX_TRIES):
        try:
            with transaction.atomic():
                return write()
        except OperationalError as error:
            if getattr(error.__cause__, "pgcode", None) not in _TRANSIENT:
                raise
            # Rivals that waited for each other are let go at different moments.
            time.sleep(random.uniform(0.01, 0.05) * attempt)
    with transaction.atomic():
        return write()
