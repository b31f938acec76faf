"""What became of votes that are no longer live, and what operators' bulk commands did."""

from __future__ import annotations

from django.contrib import admin
from django.utils.safestring import SafeString

from cardpicker.models import BulkRun, SupersededVote
from cardpicker.operations.admin.base import ReadOnlyAdmin, link_to_list, titled
from cardpicker.operations.admin.work import run_link
from cardpicker.operations.formatting import NOTHING, percent, state_badge, table, when


@admin.register(SupersededVote)
class TrailAdmin(ReadOnlyAdmin[SupersededVote]):
    """Votes that were replaced, withdrawn, retracted or purged. Cards and printings are keys: they may be gone."""

    list_display = ("card_key", "opinion", "sureness", "source", "anonymous_id", "cast", "change", "ended")
    list_filter = (
        ("change", titled("why it ended", admin.ChoicesFieldListFilter)),
        ("source", titled("kind", admin.ChoicesFieldListFilter)),
    )
    search_fields = ("card__pk__exact", "anonymous_id", "run_id__exact", "changed_by_run_id__exact")
    search_help_text = "Card's key, voter, or run"
    ordering = ("-pk",)
    fields = (*list_display, "image_version", "run", "changed_by", "grounds")

    @admin.display(description="card", ordering="card_id")
    def card_key(self, obj: SupersededVote) -> str:
        """The card's key."""
        return f"card {obj.card_id}"

    @admin.display(description="vote")
    def opinion(self, obj: SupersededVote) -> str:
        """The printing's key, or that there was none."""
        return "no such printing" if obj.is_no_match else f"printing {obj.printing_id}"

    @admin.display(description="confidence", ordering="confidence")
    def sureness(self, obj: SupersededVote) -> str:
        """How sure a machine was."""
        return percent(obj.confidence)

    @admin.display(description="cast", ordering="cast_at")
    def cast(self, obj: SupersededVote) -> SafeString | str:
        """When the vote had been cast."""
        return when(obj.cast_at)

    @admin.display(description="ended", ordering="superseded_at")
    def ended(self, obj: SupersededVote) -> SafeString | str:
        """When it stopped being live."""
        return when(obj.superseded_at)

    @admin.display(description="cast by run")
    def run(self, obj: SupersededVote) -> SafeString | str:
        """Link to the run that had cast it."""
        return run_link(obj.run_id)

    @admin.display(description="ended by run")
    def changed_by(self, obj: SupersededVote) -> SafeString | str:
        """Link to the run that ended it."""
        return run_link(obj.changed_by_run_id)

    @admin.display(description="rested on")
    def grounds(self, obj: SupersededVote) -> SafeString | str:
        """What the vote rested on."""
        return table(obj.evidence)


@admin.register(BulkRun)
class BulkRunAdmin(ReadOnlyAdmin[BulkRun]):
    """How far each bulk command has come; the command itself takes it further."""

    list_display = ("run_id", "command", "scope", "kind", "state", "cards_done", "started", "ended")
    list_filter = ("command", "writes")
    search_fields = ("run_id", "scope")
    ordering = ("-started_at",)
    fields = (*list_display, "last_card_id", "override_note", "results", "votes")

    @admin.display(description="kind", ordering="writes")
    def kind(self, obj: BulkRun) -> str:
        """Whether what it did was kept."""
        return "written" if obj.writes else "dry run"

    @admin.display(description="state")
    def state(self, obj: BulkRun) -> SafeString:
        """Whether it has come to its end."""
        return state_badge("finished", "good") if obj.finished_at is not None else state_badge("unfinished", "wait")

    @admin.display(description="started", ordering="started_at")
    def started(self, obj: BulkRun) -> SafeString | str:
        """When it began."""
        return when(obj.started_at)

    @admin.display(description="finished", ordering="finished_at")
    def ended(self, obj: BulkRun) -> SafeString | str:
        """When it came to its end."""
        return when(obj.finished_at)

    @admin.display(description="counts")
    def results(self, obj: BulkRun) -> SafeString | str:
        """What it counted."""
        return table(obj.counts) if obj.counts else NOTHING

    @admin.display(description="ended votes")
    def votes(self, obj: BulkRun) -> SafeString | str:
        """Link to the votes that it ended."""
        return link_to_list(SupersededVote, "votes that it ended", q=obj.run_id)
