"""Sync of one source: its listing into cards, a transaction a batch.

Nothing here deletes: a card that is gone from its source keeps everything and gets ``removed_at``, and loses that when
it returns. What is due is marked by the database. Interrupted anywhere, the next sync finishes the job; two syncs of
one source at once take turns at each batch and end in the same cards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from django.db import transaction
from django.db.models.functions import Now

from cardpicker.catalogue.name_key import name_key
from cardpicker.catalogue.text import clean_text
from cardpicker.models import Card, Source
from cardpicker.models.catalogue import IDENTIFIER_MAX_LENGTH, NAME_MAX_LENGTH, CardQuerySet
from cardpicker.sources.errors import SourceError
from cardpicker.sources.gone_again import ask_again
from cardpicker.sources.kinds import (
    ListedCard,
    Listing,
    ListingNote,
    ListingProblem,
    ListingProgress,
    ListsChanges,
    Progress,
)
from cardpicker.sources.name_hints import parse_name_hints
from cardpicker.sources.registry import kind_for
from cardpicker.sources.report import SyncReport

T = TypeVar("T")

_BATCH_CARDS = 500
#: Removals of more than one in this many present cards wait for a confirmation.
_HELD_SHARE = 10
#: A longer identifier may not fit the index that keeps identifiers unique.
_IDENTIFIER_MAX_BYTES = 2_500
_EXTENSION_MAX_LENGTH = 10
_SYNCED = (
    *("name", "name_key", "name_hints", "extension", "size", "dpi", "md5_checksum", "sha256_checksum", "resource_key"),
    *("image_version", "removed_at"),
)


@dataclass(slots=True, kw_only=True)
class _Sync:
    """One sync under way."""

    source: Source
    report: SyncReport = field(default_factory=SyncReport)
    seen: set[str] = field(default_factory=set)
    seen_pks: set[int] = field(default_factory=set)
    shielded: set[str] = field(default_factory=set)
    is_partial: bool = False
    state: dict[str, Any] | None = None
    is_dry: bool = False
    progress: Progress = lambda verb, done, total: None


def sync_source(
    source: Source,
    *,
    confirm_removals: bool = False,
    changes_only: bool = False,
    dry_run: bool = False,
    progress: Progress = lambda verb, done, total: None,
) -> SyncReport:
    """Bring the cards of ``source`` up to what its kind lists.

    Args:
        confirm_removals: believe the listing even when more than a tenth of the source's cards are missing from it.
        changes_only: ask only for what changed since the last sync, where the kind can; nothing is taken for removed.
        dry_run: write nothing; the report says what would be.

    Raises:
        SourceError: the source's kind is unknown or its listing could not be had; no card is taken for removed.
    """
    sync = _Sync(source=source, is_dry=dry_run, progress=progress)
    listing = _listing(source, whole=confirm_removals, changes_only=changes_only)
    present_before = frozenset(Card.objects.present().filter(source_id=source.pk).values_list("pk", flat=True))
    for batch in _batches(_accepted(sync, listing)):
        _apply(sync, batch)
        progress("synced", sync.report.listed, None)
    if not sync.is_partial:
        _settle_missing(sync, present_before, confirm_removals)
    if not dry_run:
        ask_again(source.pk, sync.seen_pks)
        _record(sync)
    return sync.report


def _listing(source: Source, *, whole: bool, changes_only: bool) -> Listing:
    """Return the listing to sync with; what was missing before is judged again by a whole one only."""
    kind = kind_for(source.kind)
    if whole or source.held_removals:
        source.listing_state = {}
    elif changes_only and isinstance(kind, ListsChanges):
        return kind.list_changes(source)
    return kind.list_cards(source)


def _accepted(sync: _Sync, listing: Listing) -> Iterator[ListedCard]:
    """Yield the listed cards that can be stored; everything else is told in the report."""
    for entry in listing:
        if isinstance(entry, ListingProgress):
            sync.progress("listed", entry.done, None)
        elif isinstance(entry, ListingNote):
            _heed(sync, entry)
        elif isinstance(entry, ListingProblem):
            sync.report.note(entry)
            if entry.shields:
                sync.shielded.add(entry.shields)
        elif problem := _objection(sync, entry):
            sync.report.note(problem)
        else:
            sync.seen.add(entry.identifier)
            yield entry


def _heed(sync: _Sync, note: ListingNote) -> None:
    if note.detail:
        sync.report.notes.append(note.detail)
    sync.is_partial = sync.is_partial or note.is_partial
    if note.state:
        sync.state = dict(note.state)


def _objection(sync: _Sync, listed: ListedCard) -> ListingProblem | None:
    identifier = listed.identifier
    where = identifier[:200]
    if identifier in sync.seen:
        return ListingProblem(where=where, detail="listed twice: the first counts")
    encoded = identifier.encode(errors="replace")
    if not 0 < len(identifier) <= IDENTIFIER_MAX_LENGTH or len(encoded) > _IDENTIFIER_MAX_BYTES:
        return ListingProblem(where=where, detail="its identifier is empty or too long: give it a shorter path")
    if "\0" in identifier or encoded.decode() != identifier:
        return ListingProblem(where=where, detail="its identifier holds what a database cannot store: rename it")
    return None


def _apply(sync: _Sync, batch: Sequence[ListedCard]) -> None:
    """Create and update the cards of one batch."""
    if sync.is_dry:
        _compare(sync, batch, _known(sync, batch))
        return
    with transaction.atomic():
        if not Source.objects.select_for_update(no_key=True).filter(pk=sync.source.pk).exists():
            raise SourceError("the source was deleted meanwhile.")
        created, updated = _compare(sync, batch, _known(sync, batch).select_for_update(no_key=True))
        Card.objects.bulk_create(created)
        Card.objects.bulk_update(sorted(updated, key=lambda card: card.pk), _SYNCED)


def _known(sync: _Sync, batch: Sequence[ListedCard]) -> CardQuerySet:
    identifiers = [listed.identifier for listed in batch]
    return Card.objects.filter(source_id=sync.source.pk, identifier__in=identifiers).order_by("pk")


def _compare(sync: _Sync, batch: Sequence[ListedCard], stored: CardQuerySet) -> tuple[list[Card], list[Card]]:
    """Return the cards to create and those to update, and count every card of the batch."""
    known = {card.identifier: card for card in stored}
    created: list[Card] = []
    updated: list[Card] = []
    for listed in batch:
        card = known.get(listed.identifier)
        if card is None:
            created.append(Card(source=sync.source, identifier=listed.identifier, **_facts(sync, listed)))
        elif _bring_up_to(card, _facts(sync, listed), sync.report):
            updated.append(card)
    sync.report.new += len(created)
    sync.seen_pks.update(card.pk for card in known.values())
    return created, updated


def _facts(sync: _Sync, listed: ListedCard) -> dict[str, Any]:
    """Return the columns that a sync keeps true."""
    name = clean_text(listed.name, NAME_MAX_LENGTH)
    if name != " ".join(listed.name.split()):
        detail = "its name is too long or holds characters that cannot be stored: it was shortened or cleaned"
        sync.report.note(ListingProblem(where=listed.identifier[:200], detail=detail))
    name = name or clean_text(listed.identifier, NAME_MAX_LENGTH) or "unnamed"
    return {
        "name": name,
        "name_key": name_key(name),
        "name_hints": dict(parse_name_hints(name)),
        "extension": listed.extension[:_EXTENSION_MAX_LENGTH],
        "size": listed.size,
        "dpi": listed.dpi,
        "md5_checksum": listed.md5_checksum,
        "sha256_checksum": listed.sha256_checksum,
        "resource_key": listed.resource_key,
        "image_version": listed.image_version,
        "removed_at": None,
    }


def _bring_up_to(card: Card, facts: dict[str, Any], report: SyncReport) -> bool:
    """Set what differs, count the card, and return whether it must be written."""
    differing = {column: value for column, value in facts.items() if getattr(card, column) != value}
    if "removed_at" in differing:
        report.returned += 1
    elif differing:
        report.changed += 1
    else:
        report.unchanged += 1
    for column, value in differing.items():
        setattr(card, column, value)
    return bool(differing)


def _settle_missing(sync: _Sync, present_before: frozenset[int], confirm_removals: bool) -> None:
    """Mark as removed what the listing no longer has, or hold it when that is too much to believe."""
    missing = [pk for pks in _batches(sorted(present_before - sync.seen_pks)) for pk in _unshielded(sync, pks)]
    if len(missing) * _HELD_SHARE > len(present_before) and not confirm_removals:
        sync.report.held = len(missing)
        return
    if sync.is_dry:
        sync.report.removed = len(missing)
        return
    for pks in _batches(missing):
        with transaction.atomic():
            gone = Card.objects.present().select_for_update(no_key=True).filter(pk__in=pks).order_by("pk")
            sync.report.removed += Card.objects.filter(pk__in=[card.pk for card in gone.only("pk")]).update(
                removed_at=Now()
            )


def _unshielded(sync: _Sync, pks: Sequence[int]) -> Iterator[int]:
    prefixes = tuple(shield for shield in sync.shielded if shield.endswith("/"))
    for pk, identifier in Card.objects.filter(pk__in=pks).order_by("pk").values_list("pk", "identifier"):
        if identifier not in sync.shielded and not identifier.startswith(prefixes):
            yield pk


def _record(sync: _Sync) -> None:
    """Keep the report with the source, and what its kind wants to find there the next time."""
    report = dict(sync.report.counts())
    kept: dict[str, Any] = {} if sync.is_partial else {"held_removals": sync.report.held}
    if sync.state is not None:
        kept["listing_state"] = sync.state
    Source.objects.filter(pk=sync.source.pk).update(
        last_synced_at=Now(),
        last_sync_report={**report, "notes": sync.report.notes, "named_problems": sync.report.named},
        **kept,
    )


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    batch: list[T] = []
    for item in items:
        batch.append(item)
        if len(batch) >= _BATCH_CARDS:
            yield batch
            batch = []
    if batch:
        yield batch
