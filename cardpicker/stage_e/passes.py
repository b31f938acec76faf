"""A pass: a named walk over the whole catalog, a source or a sample, in key order, resumable at any card.

It makes a chunk of cards due and dispatches them first; the lease of each card, not the pass's place, decides what was
done. A pass may wait for a slot, since it runs in a command and blocks no worker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, assert_never

from django.db import transaction
from django.db.models import F, QuerySet, TextField, Value
from django.db.models.functions import MD5, Cast, Concat, Now

from cardpicker.models import Card, CatalogPass, ImageEvidence, Source
from cardpicker.stage_e import work
from cardpicker.stage_e.dispatch import DispatchOptions, dispatch_micro_batch
from cardpicker.stage_e.outcomes import DispatchOutcome, DispatchStatus, ExitCode

THROTTLE_POLL_S = 1.0


class PassError(Exception):
    """The pass cannot begin as asked; the message says what to do."""


class PassReason(StrEnum):
    """Why a pass stopped."""

    COMPLETE = "complete"
    BATCH_LIMIT = "batch-limit"
    HALTED = "halted"
    THROTTLED_OUT = "throttled-out"
    INTERRUPTED = "interrupted"
    DISABLED = "disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class PassScope:
    """Which cards a pass walks over, and how."""

    name: str
    source_key: str | None = None
    reextract: bool = False
    sample: int | None = None  #: So many cards, drawn by the pass's name; None: all.


@dataclass(frozen=True, slots=True, kw_only=True)
class PassLimits:
    """When a pass stops of itself."""

    max_batches: int | None = None
    throttle_budget_s: float = 300.0  #: Time it may wait, all in all, for a free slot.


@dataclass(frozen=True, slots=True, kw_only=True)
class PassProgress:
    """Where a pass stands after a batch."""

    done: int
    left: int
    cards_per_s: float
    outcome: DispatchOutcome

    @property
    def time_left_s(self) -> float | None:
        """Seconds to the end at the pace so far; None before there is one."""
        return self.left / self.cards_per_s if self.cards_per_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassReport:
    """How a pass ended."""

    name: str
    reason: PassReason
    detail: str
    done: int
    left: int
    batches: int

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the command that ran it."""
        match self.reason:
            case PassReason.COMPLETE:
                return ExitCode.DONE
            case PassReason.BATCH_LIMIT:
                return ExitCode.LIMIT_REACHED
            case PassReason.HALTED:
                return ExitCode.ENVELOPE
            case PassReason.THROTTLED_OUT | PassReason.INTERRUPTED:
                return ExitCode.THROTTLED_OUT
            case PassReason.DISABLED:
                return ExitCode.DISABLED
            case _:
                assert_never(self.reason)


def open_pass(scope: PassScope) -> CatalogPass:
    """Return the pass of that name, new or to be taken up.

    Raises:
        PassError: no such source, or a pass of that name has another scope.
    """
    wanted = _wanted(scope)
    walk, created = CatalogPass.objects.get_or_create(name=scope.name[:64], defaults=wanted)
    if not created and any(getattr(walk, field) != value for field, value in wanted.items()):
        raise PassError(f"The pass {walk.name!r} has another scope: give this one another --name.")
    return walk


def sketch_pass(scope: PassScope) -> CatalogPass:
    """Return a pass of that scope that is not stored.

    Raises:
        PassError: no such source.
    """
    return CatalogPass(name=scope.name[:64], **_wanted(scope))


def _wanted(scope: PassScope) -> dict[str, Any]:
    source = None
    if scope.source_key is not None:
        source = Source.objects.filter(key=scope.source_key).first()
        if source is None:
            raise PassError(f"No source has the key {scope.source_key!r}.")
    return {"source": source, "reextract": scope.reextract, "sample": scope.sample}


def run_pass(
    walk: CatalogPass,
    options: DispatchOptions,
    limits: PassLimits,
    on_batch: Callable[[PassProgress], None] = lambda _: None,
) -> PassReport:
    """Walk on from where the pass stands until its end, a limit, or a halt."""
    return _Walk(walk, options, limits, on_batch).go()


def cards_of(walk: CatalogPass) -> QuerySet[Card]:
    """Return every card in the scope of a pass, whatever was done of it."""
    cards = Card.objects.present()
    if walk.source is not None:
        cards = cards.filter(source=walk.source)
    if walk.sample is not None:
        # Drawn by a hash of the pass's name, so that a resumed pass draws the same cards.
        draw = MD5(Concat(Value(walk.name), Cast("pk", TextField())))
        cards = Card.objects.filter(pk__in=cards.order_by(draw).values("pk")[: walk.sample])
    return cards


class _Walk:
    def __init__(
        self,
        walk: CatalogPass,
        options: DispatchOptions,
        limits: PassLimits,
        on_batch: Callable[[PassProgress], None],
    ) -> None:
        self.walk = walk
        self.options = options
        self.limits = limits
        self.on_batch = on_batch
        self.batches = 0
        self.waited_s = 0.0
        self.started = time.monotonic()
        self.done_before = walk.cards_done
        self.left = self._ahead().count()

    def go(self) -> PassReport:
        while chunk := self._next_chunk():
            self._make_due(chunk)
            stopped = self._drain(chunk)
            if stopped is not None:
                return self._report(*stopped)
            self._advance(chunk)
        return self._report(PassReason.COMPLETE, "")

    def _ahead(self) -> QuerySet[Card]:
        return cards_of(self.walk).filter(pk__gt=self.walk.last_card_id)

    def _next_chunk(self) -> list[int]:
        rows = self._ahead().order_by("pk").values_list("pk", flat=True)
        return list(rows[: self.options.settings.micro_batch_size])

    def _make_due(self, chunk: Sequence[int]) -> None:
        with transaction.atomic():
            if self.walk.reextract:
                # Evidence without a manifest is not current; that this pass wrote stays, for a pass taken up again.
                stale = ImageEvidence.objects.filter(card_id__in=chunk).exclude(run_id=self.run_id)
                stale.update(manifest="", judged_by="")
            work.mark_due(chunk, f"pass {self.walk.name}")

    def _drain(self, chunk: Sequence[int]) -> tuple[PassReason, str] | None:
        """Dispatch until no card of the chunk is due; return why the pass must stop, or None."""
        while work.any_due(chunk):
            if self.limits.max_batches is not None and self.batches >= self.limits.max_batches:
                return PassReason.BATCH_LIMIT, ""
            outcome = dispatch_micro_batch(
                chunk, trigger_reason="pass", run_id=self.run_id, batch_size=len(chunk), options=self.options
            )
            match outcome.status:
                case DispatchStatus.COMPLETED:
                    self.batches += 1
                    self._tell(outcome)
                case DispatchStatus.EMPTY:
                    # Somebody else has claimed the rest of the chunk.
                    return None
                case DispatchStatus.THROTTLED:
                    if self.waited_s >= self.limits.throttle_budget_s:
                        return PassReason.THROTTLED_OUT, outcome.detail
                    time.sleep(THROTTLE_POLL_S)
                    self.waited_s += THROTTLE_POLL_S
                case (
                    DispatchStatus.HALTED_OPEN_TRIP
                    | DispatchStatus.HALTED_NEW_TRIP
                    | DispatchStatus.COMPLETED_WITH_TRIP
                ):
                    return PassReason.HALTED, outcome.detail
                case DispatchStatus.INTERRUPTED:
                    return PassReason.INTERRUPTED, outcome.detail
                case DispatchStatus.DISABLED:
                    return PassReason.DISABLED, outcome.detail
                case _:
                    assert_never(outcome.status)
        return None

    @property
    def run_id(self) -> str:
        return f"pass-{self.walk.name}"[:64]

    def _advance(self, chunk: Sequence[int]) -> None:
        mine = CatalogPass.objects.filter(pk=self.walk.pk)
        mine.update(last_card_id=chunk[-1], cards_done=F("cards_done") + len(chunk))
        self.walk.refresh_from_db()
        self.left = max(0, self.left - len(chunk))

    def _tell(self, outcome: DispatchOutcome) -> None:
        elapsed = time.monotonic() - self.started
        done = self.walk.cards_done - self.done_before + outcome.batch_size
        progress = PassProgress(
            done=self.walk.cards_done + outcome.batch_size,
            left=max(0, self.left - outcome.batch_size),
            cards_per_s=done / elapsed if elapsed else 0.0,
            outcome=outcome,
        )
        self.on_batch(progress)

    def _report(self, reason: PassReason, detail: str) -> PassReport:
        mine = CatalogPass.objects.filter(pk=self.walk.pk)
        mine.update(last_reason=reason, finished_at=Now() if reason is PassReason.COMPLETE else None)
        self.walk.refresh_from_db()
        return PassReport(
            name=self.walk.name,
            reason=reason,
            detail=detail,
            done=self.walk.cards_done,
            left=self._ahead().count(),
            batches=self.batches,
        )
