"""Work: where each card stands, why it failed, and asking for it again."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString

from cardpicker.models import Card, CardWork, PilotRunLedger
from cardpicker.operations.admin.base import ByAddressFilter, ReadOnlyAdmin, link_to, link_to_list
from cardpicker.operations.formatting import NOTHING, clipped, shortened, state_badge, when
from cardpicker.operations.requeue import ask_again
from cardpicker.stage_e.requests import request_dispatch

TONES = {"done": "good", "leased": "busy", "due": "wait", "quarantined": "bad"}

#: The four states as conditions; they exclude each other and add up, as ``CardWork.state`` does.
STATES: dict[str, dict[str, bool]] = {
    "due": {"quarantined_at__isnull": True, "lease_owner__isnull": True, "due_at__isnull": False},
    "leased": {"quarantined_at__isnull": True, "lease_owner__isnull": False},
    "done": {"quarantined_at__isnull": True, "lease_owner__isnull": True, "due_at__isnull": True},
    "quarantined": {"quarantined_at__isnull": False},
}


class StateFilter(admin.SimpleListFilter):
    """Work by state."""

    title = "state"
    parameter_name = "state"
    prefix = ""  #: Path from the listed model to its work.

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The four states."""
        return [(state, state.capitalize()) for state in STATES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter by the state's condition; an unknown state filters nothing."""
        condition = STATES.get(self.value() or "")
        if condition is None:
            return queryset
        return queryset.filter(**{f"{self.prefix}{name}": value for name, value in condition.items()})


class OutcomeFilter(admin.SimpleListFilter):
    """Work by how its last attempt ended; only outcomes that occur are offered."""

    title = "last outcome"
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The outcomes that occur."""
        outcomes = CardWork.objects.exclude(last_outcome="").order_by("last_outcome").values_list("last_outcome")
        return [(outcome, outcome.replace("-", " ")) for (outcome,) in outcomes.distinct()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[CardWork]) -> QuerySet[CardWork]:
        """Filter by outcome."""
        return queryset.filter(last_outcome=self.value()) if self.value() else queryset


class RunOfWorkFilter(ByAddressFilter):
    """Cards that a run has tried last, however that ended, or has read."""

    title = "run"
    parameter_name = "run"

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Filter by the run's batches and its evidence."""
        run_id = self.value()
        if not run_id:
            return queryset
        batches = PilotRunLedger.objects.filter(run_id=run_id).values("batch_id")
        return queryset.filter(Q(last_batch__in=batches) | Q(card__evidence__run_id=run_id))


class AsksAgain:
    """The action that makes cards due, for lists of work and of cards."""

    def has_ask_permission(self, request: HttpRequest) -> bool:
        """Whoever may change work may ask for it, though nobody edits its rows."""
        return request.user.has_perm("cardpicker.change_cardwork")

    def tell(self, request: HttpRequest, work: QuerySet[CardWork]) -> None:
        """Ask, and say what came of it."""
        result = ask_again(work)
        if result.asked:
            request_dispatch("asked-for")
        text = f"{result.asked} card{'' if result.asked == 1 else 's'} made due."
        if result.left_alone:
            text += f" {result.left_alone} left alone: due already, at work now, or no longer in their source."
        messages.add_message(request, messages.SUCCESS if result.asked else messages.INFO, text)


@admin.register(CardWork)
class WorkAdmin(AsksAgain, ReadOnlyAdmin[CardWork]):
    """Work is written by the pipeline; a person asks for a card again, and reads why it failed."""

    list_display = ("card_link", "state_shown", "outcome", "detail", "attempts", "next_try", "settled", "source")
    list_filter = (StateFilter, OutcomeFilter, RunOfWorkFilter, ("card__source", admin.RelatedFieldListFilter))
    list_select_related = ("card__source",)
    search_fields = ("card__name", "card__identifier", "last_detail")
    search_help_text = "Card's name or file, or a word of the last detail"
    ordering = ("-pk",)
    actions = ("ask_for_cards_again",)
    fieldsets = (
        (None, {"fields": ("card_link", "source", "state_shown", "due_reason", "attempts", "next_try")}),
        ("Last attempt", {"fields": ("outcome", "last_detail", "settled", "tried_by", "quarantined")}),
        ("Lease", {"fields": ("batch", "lease_ends")}),
        ("Evidence", {"fields": ("run",)}),
    )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Say whether this person may ask for the card again."""
        context = {"may_ask": self.has_ask_permission(request)}
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    @admin.action(description="Ask again: make the chosen cards due now", permissions=["ask"])
    def ask_for_cards_again(self, request: HttpRequest, queryset: QuerySet[CardWork]) -> None:
        """Make the chosen rows due."""
        self.tell(request, queryset)

    @admin.display(description="card", ordering="card__name")
    def card_link(self, obj: CardWork) -> SafeString | str:
        """Link to the card."""
        return link_to(obj.card, self.describe(obj))

    def describe(self, obj: CardWork) -> str:
        """Name the card rather than its id."""
        return shortened(obj.card.name) or f"card {obj.pk}"

    @admin.display(description="source", ordering="card__source__name")
    def source(self, obj: CardWork) -> str:
        """The card's source."""
        return str(obj.card.source)

    @admin.display(description="state")
    def state_shown(self, obj: CardWork) -> SafeString | str:
        """The state as a badge."""
        return work_state(obj)

    @admin.display(description="why it became due", ordering="reason")
    def due_reason(self, obj: CardWork) -> str:
        """The reason in words."""
        return obj.reason.replace("-", " ") or NOTHING

    @admin.display(description="last outcome", ordering="last_outcome")
    def outcome(self, obj: CardWork) -> str:
        """How the last attempt ended, in words."""
        return obj.last_outcome.replace("-", " ") or NOTHING

    @admin.display(description="last detail")
    def detail(self, obj: CardWork) -> SafeString | str:
        """The beginning of what the last attempt left behind."""
        return clipped(obj.last_detail, 90)

    @admin.display(description="next try", ordering="due_at")
    def next_try(self, obj: CardWork) -> SafeString | str:
        """When the card may be claimed next."""
        return next_try(obj)

    @admin.display(description="last attempt ended", ordering="settled_at")
    def settled(self, obj: CardWork) -> SafeString | str:
        """When the last attempt ended."""
        return when(obj.settled_at)

    @admin.display(description="quarantined since")
    def quarantined(self, obj: CardWork) -> SafeString | str:
        """Since when the card has been set aside."""
        return when(obj.quarantined_at)

    @admin.display(description="claimed until")
    def lease_ends(self, obj: CardWork) -> SafeString | str:
        """When the claim runs out unless it is extended."""
        return when(obj.leased_until)

    @admin.display(description="claimed by")
    def batch(self, obj: CardWork) -> SafeString | str:
        """Link to the batch that works on the card."""
        if obj.lease_owner is None:
            return "nobody"
        return link_to_list(PilotRunLedger, f"batch {obj.lease_owner}", q=obj.lease_owner)

    @admin.display(description="tried by")
    def tried_by(self, obj: CardWork) -> SafeString | str:
        """Link to the batch that tried the card last, for as long as the ledger has it."""
        if obj.last_batch is None:
            return NOTHING
        return link_to_list(PilotRunLedger, f"batch {obj.last_batch}", q=obj.last_batch)

    @admin.display(description="read by run")
    def run(self, obj: CardWork) -> SafeString | str:
        """Link to the run whose evidence the card has."""
        evidence = getattr(obj.card, "evidence", None)
        return run_link(evidence.run_id if evidence else "")


def work_state(work: CardWork | None) -> SafeString | str:
    """Show a work row's state as a badge; a card without one was never due."""
    if work is None:
        return NOTHING
    return state_badge(work.state, TONES[work.state])


def next_try(work: CardWork) -> SafeString | str:
    """Say when a card may be claimed next."""
    if work.due_at is None:
        return NOTHING
    return "now" if work.due_at <= timezone.now() else when(work.due_at)


def run_link(run_id: str) -> SafeString | str:
    """Link to the batches of a run."""
    return link_to_list(PilotRunLedger, run_id, run_id=run_id) if run_id else NOTHING


def work_of(card: Card) -> CardWork | None:
    """Return the card's work, or None where the row is missing."""
    return getattr(card, "work", None)
