"""Trips: why dispatch is halted, acknowledging it, and halting it on purpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString

from cardpicker.models import EnvelopeBar, EnvelopeTrip, PilotRunLedger
from cardpicker.operations.admin.base import ReadOnlyAdmin, link_to_list, page_of
from cardpicker.operations.admin.work import run_link
from cardpicker.operations.formatting import NOTHING, clipped, megabytes, state_badge, when
from cardpicker.stage_e import envelope

#: How a bar's measure is written; a bar that is missing here has none.
MEASURES: dict[str, Callable[[float | None], str]] = {
    EnvelopeBar.HOST_LOAD: lambda value: NOTHING if value is None else f"{value:.2f}",
    EnvelopeBar.RSS: megabytes,
    EnvelopeBar.FETCH_FAILURE_RATE: lambda value: NOTHING if value is None else f"{value:.1%}",
}


class OpenFilter(admin.SimpleListFilter):
    """Trips by whether they are open."""

    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Open or acknowledged."""
        return [("open", "Open"), ("acknowledged", "Acknowledged")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[EnvelopeTrip]) -> QuerySet[EnvelopeTrip]:
        """Filter by acknowledgment."""
        if self.value() not in ("open", "acknowledged"):
            return queryset
        return queryset.filter(acknowledged_at__isnull=self.value() == "open")


@admin.register(EnvelopeTrip)
class TripAdmin(ReadOnlyAdmin[EnvelopeTrip]):
    """Trips are append-only: one is acknowledged with a note, never edited and never deleted."""

    list_display = ("bar", "state", "gates", "measured", "short_detail", "opened", "acknowledged", "short_note")
    list_filter = (OpenFilter, "bar", "host")
    search_fields = ("detail", "note", "host", "opened_by", "acknowledged_by", "run_id__exact")
    search_help_text = "Detail, note, host, person or run"
    date_hierarchy = "opened_at"
    ordering = ("-opened_at",)
    fieldsets = (
        (None, {"fields": ("bar", "state", "gates", "measured", "allowed", "detail")}),
        ("Opened", {"fields": ("opened", "opened_by", "run", "batches")}),
        ("Acknowledged", {"fields": ("acknowledged", "acknowledged_by", "note")}),
    )

    def get_urls(self) -> list[URLPattern]:
        """Add the two forms' addresses."""
        wrap = self.admin_site.admin_view
        return [
            path("pause/", wrap(self.pause_view), name="cardpicker_envelopetrip_pause"),
            path("<int:trip_id>/acknowledge/", wrap(self.acknowledge_view), name="cardpicker_envelopetrip_acknowledge"),
            *super().get_urls(),
        ]

    def acknowledge_view(self, request: HttpRequest, trip_id: int) -> HttpResponse:
        """Close an open trip with the note of the form."""
        page = reverse("admin:cardpicker_envelopetrip_change", args=[trip_id])
        refused = self._refusal(request, "cardpicker.change_envelopetrip")
        if refused is not None:
            return refused
        try:
            trip = envelope.acknowledge_trip(trip_id, request.POST.get("note", ""), request.user.get_username())
        except ValueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(page)
        self.log_change(request, trip, f"Acknowledged: {trip.note}")
        self.message_user(request, f"{trip} is acknowledged. {_what_now()}", messages.SUCCESS)
        return HttpResponseRedirect(page)

    def pause_view(self, request: HttpRequest) -> HttpResponse:
        """Stop dispatch on every host until the pause is acknowledged."""
        refused = self._refusal(request, "cardpicker.add_envelopetrip")
        if refused is not None:
            return refused
        who, note = request.user.get_username(), request.POST.get("note", "")
        standing = EnvelopeTrip.objects.filter(bar=EnvelopeBar.OPERATOR_PAUSE, acknowledged_at__isnull=True).first()
        if standing is not None:
            self.message_user(request, f"Dispatch is paused already, by {standing.opened_by}.", messages.WARNING)
            return HttpResponseRedirect(page_of(standing))
        try:
            trip = envelope.pause(who, note)
        except ValueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return HttpResponseRedirect(reverse("admin:cardpicker_envelopetrip_changelist"))
        self.log_addition(request, trip, f"Paused dispatch: {trip.detail}")
        self.message_user(request, "Dispatch is paused. It resumes when the pause is acknowledged.", messages.SUCCESS)
        return HttpResponseRedirect(page_of(trip))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Say whether this person may acknowledge."""
        context = {"may_acknowledge": request.user.has_perm("cardpicker.change_envelopetrip")}
        return super().change_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Say whether this person may pause."""
        context = {"may_pause": request.user.has_perm("cardpicker.add_envelopetrip")}
        return super().changelist_view(request, {**context, **(extra_context or {})})

    def _refusal(self, request: HttpRequest, permission: str) -> HttpResponse | None:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.has_perm(permission):
            raise PermissionDenied
        return None

    @admin.display(description="state")
    def state(self, obj: EnvelopeTrip) -> SafeString:
        """Open or acknowledged."""
        return state_badge("open", "bad") if obj.acknowledged_at is None else state_badge("acknowledged", "good")

    @admin.display(description="gates", ordering="host")
    def gates(self, obj: EnvelopeTrip) -> str:
        """Which hosts it stops."""
        return obj.host or "every host"

    @admin.display(description="measured")
    def measured(self, obj: EnvelopeTrip) -> str:
        """What was measured, in the bar's unit."""
        return MEASURES[obj.bar](obj.value) if obj.bar in MEASURES else NOTHING

    @admin.display(description="allowed")
    def allowed(self, obj: EnvelopeTrip) -> str:
        """What was allowed, in the bar's unit."""
        return MEASURES[obj.bar](obj.ceiling) if obj.bar in MEASURES else NOTHING

    @admin.display(description="detail")
    def short_detail(self, obj: EnvelopeTrip) -> SafeString | str:
        """The beginning of the detail."""
        return clipped(obj.detail, 90)

    @admin.display(description="note")
    def short_note(self, obj: EnvelopeTrip) -> SafeString | str:
        """The beginning of the note."""
        return clipped(obj.note, 60)

    @admin.display(description="opened", ordering="opened_at")
    def opened(self, obj: EnvelopeTrip) -> SafeString | str:
        """When the bar was breached."""
        return when(obj.opened_at)

    @admin.display(description="acknowledged", ordering="acknowledged_at")
    def acknowledged(self, obj: EnvelopeTrip) -> SafeString | str:
        """When a person acknowledged."""
        return when(obj.acknowledged_at)

    @admin.display(description="run")
    def run(self, obj: EnvelopeTrip) -> SafeString | str:
        """Link to the run that breached the bar."""
        return run_link(obj.run_id)

    @admin.display(description="batches that saw it")
    def batches(self, obj: EnvelopeTrip) -> SafeString:
        """Link to the batches that met the lockout."""
        return link_to_list(PilotRunLedger, "Batches", lockout_trip__id__exact=obj.pk)


def _what_now() -> str:
    left = EnvelopeTrip.objects.filter(acknowledged_at__isnull=True).count()
    if left:
        return f"Dispatch stays halted: {left} more trip{'s are' if left > 1 else ' is'} open."
    return "Dispatch may resume."
