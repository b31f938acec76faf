"""What the quickstart shows: how far a folder's cards have come, and what was made of each.

It never works on a card itself: that is left to the workers, which it only reminds of what is due.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Prefetch, Q, QuerySet

from cardpicker.models import Card, CardPrintingTag, CardWork, EnvelopeTrip, ImageEvidence
from cardpicker.operations.text_table import format_table
from cardpicker.stage_e.requests import request_dispatch
from cardpicker.stage_e.sweep import reconcile

COLUMNS = ("card", "what was read", "printing", "confidence", "how long")
RIGHT_ALIGNED = frozenset({"confidence", "how long"})
WIDEST_CELL = 44
NOTHING = "–"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the cards of a folder have come."""

    total: int
    settled: int
    unsettled: tuple[str, ...]  #: One line for each card that is neither done nor quarantined with a reason.
    halts: tuple[str, ...]  #: One line for each open trip.

    @property
    def is_settled(self) -> bool:
        """Whether there are cards and each of them is settled."""
        return self.total > 0 and self.settled == self.total


def cards_in(folder: Path | None) -> QuerySet[Card]:
    """Return the cards that the source of ``folder`` lists; None: those of every source."""
    cards = Card.objects.present()
    if folder is not None:
        cards = cards.filter(source__location__in={str(folder), str(folder.resolve())})
    return cards


def measure_progress(folder: Path | None) -> Progress:
    """Count the cards of ``folder`` that are settled: done, or quarantined for a reason that has a name."""
    done = Q(work__due_at=None, work__lease_owner=None, work__quarantined_at=None, work__isnull=False)
    named = Q(work__quarantined_at__isnull=False) & ~Q(work__last_outcome="")
    cards = cards_in(folder)
    open_cards = cards.exclude(done | named).select_related("work")
    total = cards.count()
    unsettled = tuple(_unsettled_line(card) for card in open_cards)
    halts = tuple(_halt_line(trip) for trip in EnvelopeTrip.objects.filter(acknowledged_at=None).order_by("opened_at"))
    return Progress(total=total, settled=total - len(unsettled), unsettled=unsettled, halts=halts)


def _unsettled_line(card: Card) -> str:
    work: CardWork | None = getattr(card, "work", None)
    if work is None:
        return f"{card.name}: no work recorded"
    last = f", last outcome {work.last_outcome} {work.last_detail}".rstrip() if work.last_outcome else ""
    return f"{card.name}: {work.state} ({work.reason or 'no reason'}, attempt {work.attempts}{last})"


def _halt_line(trip: EnvelopeTrip) -> str:
    measured = (
        "" if trip.value is None or trip.ceiling is None else f": {trip.value:g} where {trip.ceiling:g} is allowed"
    )
    return (
        f"dispatch is halted, {trip.get_bar_display()}{measured}; it goes on after"
        f' manage.py resolve_envelope_trip --acknowledge-trip {trip.pk} --note "what you found"'
    )


def remind_workers() -> None:
    """Take back what dead runs hold and ask for a dispatch: after a kill nothing else would, before the next sweep."""
    reconcile(settings.STAGE_E.max_attempts)
    request_dispatch("quickstart")


def report_rows(folder: Path | None) -> list[tuple[str, ...]]:
    """Return one row of ``COLUMNS`` for each card of ``folder``, by name."""
    votes = CardPrintingTag.objects.select_related("printing__expansion").order_by("-confidence", "anonymous_id")
    cards = cards_in(folder).select_related("work", "evidence", "review_item", "inferred_canonical_card__expansion")
    cards = cards.prefetch_related(Prefetch("printing_tags", queryset=votes)).order_by("name", "pk")
    return [_row(card) for card in cards]


def _row(card: Card) -> tuple[str, ...]:
    evidence: ImageEvidence | None = getattr(card, "evidence", None)
    printing, confidence = _verdict(card)
    took = f"{evidence.elapsed_ms / 1000:.1f} s" if evidence is not None else NOTHING
    if evidence is not None and evidence.transferred_from_id is not None:
        took = "copied"
    return card.name, _what_was_read(card, evidence), printing, confidence, took


def _what_was_read(card: Card, evidence: ImageEvidence | None) -> str:
    work: CardWork | None = getattr(card, "work", None)
    if work is not None and work.quarantined_at is not None:
        return f"set aside: {work.last_outcome}"
    if evidence is None:
        return NOTHING
    readings: Mapping[str, Any] = evidence.readings
    line, artist = readings.get("collector_line") or {}, readings.get("artist") or {}
    parts = [(line.get("set_code") or "").upper(), line.get("number"), (line.get("language") or "").upper()]
    parts.append(artist.get("artist"))
    year = (readings.get("legal_line") or {}).get("copyright_year")
    parts.append(f"© {year}" if year else None)
    return " ".join(str(part) for part in parts if part) or "nothing"


def _verdict(card: Card) -> tuple[str, str]:
    """Return what the card shows and how sure that is: people's consensus, else the surest machine vote, else why there is none."""
    if card.inferred_canonical_card is not None:
        return str(card.inferred_canonical_card), "resolved"
    for vote in card.printing_tags.all():
        shown = "no such printing" if vote.printing is None else _printing_words(vote)
        return shown, NOTHING if vote.confidence is None else f"{vote.confidence:.2f}"
    review = getattr(card, "review_item", None)
    return (f"for a person: {review.get_reason_display().lower()}" if review is not None else NOTHING), NOTHING


def _printing_words(vote: CardPrintingTag) -> str:
    printing = vote.printing
    assert printing is not None
    return f"{printing.expansion.code.upper()} {printing.collector_number} {printing.language.upper()}, {printing.name}"


def result_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lay ``rows`` out under ``COLUMNS``."""
    return format_table(COLUMNS, rows, right=RIGHT_ALIGNED, widest=WIDEST_CELL)


def ensure_admin(username: str, password: str) -> bool:
    """Make a superuser unless one of that name exists.

    Returns:
        Whether ``password`` is the account's password; a person may have set another, and it is left alone.
    """
    users = get_user_model()._default_manager
    user = users.filter(username=username).first()
    if user is None:
        users.create_superuser(username=username, email="", password=password)
        return True
    return user.check_password(password)
