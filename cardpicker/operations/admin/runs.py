"""Runs: the ledger of batches, walks over the whole catalog, and how often a dispatch found no slot."""

from __future__ import annotations

from django.contrib import admin
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cardpicker.models import (
    Card,
    CardPrintingTag,
    CardWork,
    CatalogPass,
    PilotRunLedger,
    ReviewItem,
    RunStatus,
    StageEThrottleCounter,
)
from cardpicker.operations.admin.base import ReadOnlyAdmin, link_to, link_to_list
from cardpicker.operations.formatting import NOTHING, clipped, duration, megabytes, state_badge, table, when

TONES: dict[str, str] = {
    RunStatus.COMPLETED: "good",
    RunStatus.RUNNING: "busy",
    RunStatus.INTERRUPTED: "wait",
    RunStatus.FAILED: "bad",
}

#: The ways in which a card of a batch can end, in words; what they leave of ``batch_size`` has not ended yet.
STAGE_C = {
    "stored": "stage_c_stored",
    "transferred": "stage_c_transferred",
    "current already": "stage_c_current",
    "unusable": "stage_c_unusable",
    "crashed": "stage_c_crashed",
    "deferred": "stage_c_deferred",
    "throttled": "fetch_throttled",
    "fetch failed": "fetch_failed",
}
TROUBLE = ("unusable", "crashed", "deferred", "throttled", "fetch failed")
STAGE_D = {
    "votes cast": "stage_d_votes",
    "voted already": "already_voted",
    "sent to review": "stage_d_review",
    "resolved": "stage_d_resolved",
}


@admin.register(PilotRunLedger)
class RunAdmin(ReadOnlyAdmin[PilotRunLedger]):
    """The ledger is what happened."""

    list_display = (
        "started",
        "state_and_reason",
        "trigger",
        "run",
        "cards",
        "read",
        "trouble",
        "votes",
        "review",
        "resolved",
        "took",
        "memory",
    )
    list_filter = ("status", "trigger_reason", "host")
    search_fields = ("run_id", "batch_id__exact", "host", "reason")
    search_help_text = "Run, batch, host or reason"
    date_hierarchy = "started_at"
    ordering = ("-started_at",)
    fieldsets = (
        (None, {"fields": ("run", "batch_id", "state", "trigger", "reason", "started", "ended", "took")}),
        ("Cards", {"fields": ("cards", "stage_c", "stage_d", "yields_shown", "links")}),
        ("Process", {"fields": ("owner", "slot", "heartbeat", "memory", "tree_memory", "trip")}),
    )

    @admin.display(description="started", ordering="started_at")
    def started(self, obj: PilotRunLedger) -> SafeString | str:
        """When the batch began."""
        return when(obj.started_at)

    @admin.display(description="ended", ordering="finished_at")
    def ended(self, obj: PilotRunLedger) -> SafeString | str:
        """When the batch ended."""
        return "still running" if obj.finished_at is None else when(obj.finished_at)

    @admin.display(description="status", ordering="status")
    def state(self, obj: PilotRunLedger) -> SafeString:
        """The status as a badge."""
        return state_badge(obj.get_status_display(), TONES.get(obj.status, ""))

    @admin.display(description="status", ordering="status")
    def state_and_reason(self, obj: PilotRunLedger) -> SafeString:
        """The status, and the beginning of the reason below it."""
        return format_html("{}<br>{}", self.state(obj), clipped(obj.reason, 90)) if obj.reason else self.state(obj)

    @admin.display(description="trigger", ordering="trigger_reason")
    def trigger(self, obj: PilotRunLedger) -> str:
        """What asked for the batch, in words."""
        return obj.trigger_reason.replace("-", " ")

    @admin.display(description="run", ordering="run_id")
    def run(self, obj: PilotRunLedger) -> SafeString:
        """Link to all batches of the run."""
        return link_to_list(PilotRunLedger, obj.run_id, run_id=obj.run_id)

    @admin.display(description="cards", ordering="batch_size")
    def cards(self, obj: PilotRunLedger) -> int:
        """Cards of the batch."""
        return obj.batch_size

    @admin.display(description="votes", ordering="stage_d_votes")
    def votes(self, obj: PilotRunLedger) -> int:
        """Votes that machines cast."""
        return obj.stage_d_votes

    @admin.display(description="review", ordering="stage_d_review")
    def review(self, obj: PilotRunLedger) -> int:
        """Cards that were sent to a person."""
        return obj.stage_d_review

    @admin.display(description="resolved", ordering="stage_d_resolved")
    def resolved(self, obj: PilotRunLedger) -> int:
        """Cards whose printing consensus found."""
        return obj.stage_d_resolved

    @admin.display(description="read")
    def read(self, obj: PilotRunLedger) -> int:
        """Cards that have evidence thanks to the batch."""
        return obj.stage_c_stored + obj.stage_c_transferred

    @admin.display(description="not read")
    def trouble(self, obj: PilotRunLedger) -> SafeString | str:
        """Cards that ended without evidence, by how."""
        counts = {name: getattr(obj, STAGE_C[name]) for name in TROUBLE}
        total = sum(counts.values())
        detail = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return format_html('<span title="{}">{}</span>', detail, total) if total else "0"

    @admin.display(description="took", ordering="elapsed_s")
    def took(self, obj: PilotRunLedger) -> str:
        """How long the batch took, or has been running."""
        if obj.finished_at is None:
            return duration((timezone.now() - obj.started_at).total_seconds())
        return duration(obj.elapsed_s or (obj.finished_at - obj.started_at).total_seconds())

    @admin.display(description="memory", ordering="peak_rss_mb")
    def memory(self, obj: PilotRunLedger) -> str:
        """Peak memory of the largest process."""
        return megabytes(obj.peak_rss_mb)

    @admin.display(description="all processes together")
    def tree_memory(self, obj: PilotRunLedger) -> str:
        """Peak memory of the whole dispatch."""
        return megabytes(obj.peak_tree_rss_mb)

    @admin.display(description="images")
    def stage_c(self, obj: PilotRunLedger) -> SafeString | str:
        """How the batch's cards ended; the lines add up to the number of cards."""
        counts = {name: getattr(obj, field) for name, field in STAGE_C.items()}
        left = obj.batch_size - sum(counts.values())
        return table(
            {**counts, "not ended" if obj.finished_at is None else "not accounted for": max(0, left)}, keep_order=True
        )

    @admin.display(description="votes")
    def stage_d(self, obj: PilotRunLedger) -> SafeString | str:
        """What came of the evidence."""
        return table({name: getattr(obj, field) for name, field in STAGE_D.items()}, keep_order=True)

    @admin.display(description="yield by extractor and calculator")
    def yields_shown(self, obj: PilotRunLedger) -> SafeString | str:
        """What each extractor and calculator brought."""
        return table(obj.yields, units=False)

    @admin.display(description="rows of this run")
    def links(self, obj: PilotRunLedger) -> SafeString:
        """Link to what the run has touched."""
        return format_html(
            "{} · {} · {} · {}",
            link_to_list(Card, "cards read", run=obj.run_id),
            link_to_list(CardWork, "cards tried, and how each ended", run=obj.run_id),
            link_to_list(CardPrintingTag, "votes", run_id=obj.run_id),
            link_to_list(ReviewItem, "questions", run_id=obj.run_id),
        )

    @admin.display(description="owner")
    def owner(self, obj: PilotRunLedger) -> SafeString:
        """Host and process; a process id alone is reused."""
        return format_html("process {} on {}, started {}", obj.pid, obj.host, when(obj.process_started_at))

    @admin.display(description="last heartbeat")
    def heartbeat(self, obj: PilotRunLedger) -> SafeString | str:
        """When the owner was last heard of."""
        return when(obj.heartbeat_at)

    @admin.display(description="lockout seen")
    def trip(self, obj: PilotRunLedger) -> SafeString | str:
        """Link to the trip that the batch caused."""
        return link_to(obj.lockout_trip)


@admin.register(CatalogPass)
class PassAdmin(ReadOnlyAdmin[CatalogPass]):
    """How far each walk has come; a command takes it further."""

    list_display = ("name", "state", "extent", "cards_done", "started", "ended", "last_reason")
    list_select_related = ("source",)
    search_fields = ("name",)
    ordering = ("-started_at",)
    fields = ("name", "state", "extent", "reextract", "cards_done", "last_card_id", "started", "ended", "last_reason")

    @admin.display(description="state")
    def state(self, obj: CatalogPass) -> SafeString:
        """Whether the walk has come to its end."""
        return state_badge("finished", "good") if obj.finished_at is not None else state_badge("unfinished", "wait")

    @admin.display(description="walks over")
    def extent(self, obj: CatalogPass) -> str:
        """Which cards it takes."""
        where = f"source {obj.source}" if obj.source else "the whole catalog"
        return where if obj.sample is None else f"{obj.sample:,} cards drawn from {where}"

    @admin.display(description="started", ordering="started_at")
    def started(self, obj: CatalogPass) -> SafeString | str:
        """When the walk began."""
        return when(obj.started_at)

    @admin.display(description="finished", ordering="finished_at")
    def ended(self, obj: CatalogPass) -> SafeString | str:
        """When the walk came to its end."""
        return when(obj.finished_at)


@admin.register(StageEThrottleCounter)
class ThrottleCounterAdmin(ReadOnlyAdmin[StageEThrottleCounter]):
    """One row, counted by the dispatcher."""

    list_display = ("times", "latest")
    fields = ("times", "latest")

    @admin.display(description="dispatches that found no slot", ordering="count")
    def times(self, obj: StageEThrottleCounter) -> str:
        """The count."""
        return f"{obj.count:,}"

    @admin.display(description="latest", ordering="last_at")
    def latest(self, obj: StageEThrottleCounter) -> SafeString | str:
        """When it last happened."""
        return NOTHING if obj.last_at is None else when(obj.last_at)
