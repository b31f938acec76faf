"""The failure window and the fetch budgets that all processes share."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from cardpicker.models import FetchBudget, FetchClass, FetchOutcome
from cardpicker.operations.admin.base import ReadOnlyAdmin
from cardpicker.operations.formatting import state_badge, when


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
    """When each destination may be asked next."""

    list_display = ("destination", "next_permit")
    search_fields = ("destination",)
    ordering = ("destination",)
    fields = ("destination", "next_permit")

    @admin.display(description="next permit", ordering="next_permit_at")
    def next_permit(self, obj: FetchBudget) -> SafeString | str:
        """When the next fetch may start."""
        return when(obj.next_permit_at)
