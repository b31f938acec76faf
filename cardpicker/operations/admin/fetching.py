"""The failure window and the fetch budgets that all processes share."""

from __future__ import annotations

from django.conf import settings
from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cardpicker.models import FetchBudget, FetchClass, FetchOutcome
from cardpicker.operations.admin.base import ReadOnlyAdmin
from cardpicker.operations.durations import in_words
from cardpicker.operations.formatting import NOTHING, state_badge, when
from cardpicker.stage_c.fetch.budgets import Budget, budget_of


@admin.register(FetchOutcome)
class FetchOutcomeAdmin(ReadOnlyAdmin[FetchOutcome]):
    """The window that the failure rate is taken over."""

    list_display = ("moment", "result", "host")
    list_filter = ("outcome", "host")
    date_hierarchy = "at"
    ordering = ("-at", "-pk")
    fields = ("moment", "result", "host")

    @admin.display(description="at", ordering="at")
    def moment(self, obj: FetchOutcome) -> SafeString | str:
        """When the fetch ended."""
        return when(obj.at)

    @admin.display(description="outcome", ordering="outcome")
    def result(self, obj: FetchOutcome) -> SafeString:
        """How the fetch ended."""
        return state_badge(obj.get_outcome_display(), "good" if obj.outcome == FetchClass.FETCHED else "bad")


@admin.register(FetchBudget)
class FetchBudgetAdmin(ReadOnlyAdmin[FetchBudget]):
    """How fast each destination is asked now, and why not faster."""

    list_display = ("destination", "rate_now", "rate_set", "state", "next_permit", "last_pressure", "retry_after")
    search_fields = ("destination",)
    ordering = ("destination",)
    fields = list_display

    def get_queryset(self, request: HttpRequest) -> QuerySet[FetchBudget]:
        """Read the clock of the database along, which the budgets go by."""
        return super().get_queryset(request).annotate(read_at=Now())

    @admin.display(description="images a second now")
    def rate_now(self, obj: FetchBudget) -> str:
        """The rate that all processes and hosts share at this moment."""
        return f"{_standing(obj).now_per_s:.2f}"

    @admin.display(description="set")
    def rate_set(self, obj: FetchBudget) -> str:
        """The rate without any pressure."""
        return f"{_standing(obj).set_per_s:g}"

    @admin.display(description="state")
    def state(self, obj: FetchBudget) -> SafeString:
        """Whether the destination is asked freely, is being eased, or is only probed."""
        standing = _standing(obj)
        if standing.is_probing:
            return state_badge("probing: locked out", "bad")
        if standing.widened_by > 1:
            return state_badge(f"widened {standing.widened_by:.2f}×", "wait")
        return state_badge("free", "good")

    @admin.display(description="next permit", ordering="next_permit_at")
    def next_permit(self, obj: FetchBudget) -> SafeString | str:
        """When the next fetch may start."""
        wait_s = _standing(obj).next_permit_in_s
        return format_html("{} (in {})", when(obj.next_permit_at), in_words(wait_s)) if wait_s >= 1 else "now"

    @admin.display(description="last pressure", ordering="pressed_at")
    def last_pressure(self, obj: FetchBudget) -> SafeString | str:
        """When the destination last asked for patience, or refused us."""
        return when(obj.pressed_at)

    @admin.display(description="Retry-After then", ordering="last_retry_after_s")
    def retry_after(self, obj: FetchBudget) -> str:
        """What it asked for."""
        return NOTHING if obj.last_retry_after_s is None else in_words(obj.last_retry_after_s)


def _standing(obj: FetchBudget) -> Budget:
    """Return how the row stood when it was read."""
    return budget_of(obj, getattr(obj, "read_at", timezone.now()), settings.STAGE_C)
