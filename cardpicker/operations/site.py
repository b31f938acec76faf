"""The admin site: models in groups of plain words, and open trips on every page."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.template.response import TemplateResponse

from cardpicker.models import EnvelopeTrip, PilotRunLedger, RunStatus
from cardpicker.stage_e.work import count_by_state

#: Heading, then the models under it in reading order. A model that is named nowhere keeps its app's own heading.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Catalog",
        (
            "Source",
            "Card",
            "CanonicalCard",
            "CanonicalExpansion",
            "CanonicalArtist",
            "CanonicalArt",
            "CatalogVersion",
        ),
    ),
    ("Identification", ("ImageEvidence", "CardPrintingTag", "ReviewItem", "SupersededVote")),
    ("Pipeline", ("CardWork", "PilotRunLedger", "CatalogPass", "BulkRun", "EnvelopeTrip", "StageEThrottleCounter")),
    ("Fetching", ("FetchOutcome", "FetchBudget")),
)
#: What every page links to.
MAIN = ("Card", "ReviewItem", "CardWork", "PilotRunLedger", "EnvelopeTrip", "Source")
OWN_APP = "cardpicker"
APP_HEADINGS = {"auth": "People", "django_q": "Task queue"}


class OperationsSite(admin.AdminSite):
    """What operators see first: whether dispatch is halted, how much work there is, and where everything is."""

    site_header = "Cardpicker operations"
    site_title = "Cardpicker"
    index_title = "Operations"
    index_template = "operations/index.html"
    enable_nav_sidebar = False  # the lists need the width; a row of links does

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the open trips, so that a halt is seen from every page."""
        context = super().each_context(request)
        if context["has_permission"] and not context["is_popup"]:
            context["open_trips"] = list(EnvelopeTrip.objects.filter(acknowledged_at__isnull=True).order_by("pk"))
            context["main_links"] = _main_links(context["available_apps"])
            context["may_see_trips"] = request.user.has_perm("cardpicker.view_envelopetrip")
        return context

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        """Show the groups under a line of work by state, counted now."""
        context: dict[str, Any] = {}
        if request.user.has_perm("cardpicker.view_cardwork"):
            counts = count_by_state()
            context["work_by_state"] = [(state, counts[state]) for state in ("due", "leased", "done", "quarantined")]
            context["work_total"] = sum(counts.values())
            context["running"] = PilotRunLedger.objects.filter(status=RunStatus.RUNNING).count()
        return super().index(request, {**context, **(extra_context or {})})

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the models by ``GROUPS``; an app's own index stays whole."""
        apps = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        ours = [app for app in apps if app["app_label"] == OWN_APP]
        others = [
            {**app, "name": APP_HEADINGS.get(app["app_label"], app["name"])}
            for app in apps
            if app["app_label"] != OWN_APP
        ]
        return [group for app in ours for group in _grouped(app)] + others


def _main_links(apps: list[Any]) -> list[dict[str, Any]]:
    models = {model["object_name"]: model for app in apps for model in app["models"] if model["admin_url"]}
    return [models[name] for name in MAIN if name in models]


def _grouped(app: Any) -> list[dict[str, Any]]:
    left = {model["object_name"]: model for model in app["models"]}
    groups = [(name, [left.pop(model) for model in models if model in left]) for name, models in GROUPS]
    groups.append((app["name"], list(left.values())))
    return [
        # An anchor is in no request's path: with the app's own address every group would be marked as the current one.
        {**app, "name": name, "app_label": f"{OWN_APP}-{name.lower()}", "app_url": f"#{name.lower()}", "models": models}
        for name, models in groups
        if models
    ]
