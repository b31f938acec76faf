"""What a bulk command is to the walk that runs it: cards in a scope, and something to do to a few of them at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from django.db.models import QuerySet

from cardpicker.models import Card, Source
from cardpicker.models.catalogue import CardQuerySet


class BulkError(Exception):
    """The command cannot go on as asked; the message says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkResult:
    """What was done to a chunk, or would be."""

    counts: Mapping[str, int] = field(default_factory=dict)
    changes: Sequence[Mapping[str, Any]] = ()  #: One JSON object each, for the diff report.


class BulkJob(Protocol):
    """One bulk command. A job is a value: it is sent to other processes."""

    command: ClassVar[str]
    needs_dry_run: ClassVar[bool]  #: Whether it writes only what a dry run has shown.

    @property
    def words(self) -> str:
        """The scope in words; equal exactly when the same cards are treated in the same way."""

    def cards(self) -> QuerySet[Card]:
        """Every card in scope now."""

    def apply(self, card_ids: Collection[int], run_id: str) -> ChunkResult:
        """Do it to these cards, within the caller's transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which cards: all, those of a source, or named ones."""

    source_key: str | None = None
    card_ids: tuple[int, ...] = ()

    @property
    def words(self) -> str:
        """The scope as it is written into the record of a run."""
        parts = [f"source {self.source_key}"] if self.source_key is not None else []
        parts += [f"cards {','.join(map(str, sorted(self.card_ids)))}"] if self.card_ids else []
        return ", ".join(parts) or "all cards"

    def cards(self) -> CardQuerySet:
        """Every card in scope now.

        Raises:
            BulkError: no source has the key.
        """
        cards = Card.objects.all()
        if self.source_key is not None:
            if not Source.objects.filter(key=self.source_key).exists():
                raise BulkError(f"No source has the key {self.source_key!r}.")
            cards = cards.filter(source__key=self.source_key)
        return cards.filter(pk__in=self.card_ids) if self.card_ids else cards
