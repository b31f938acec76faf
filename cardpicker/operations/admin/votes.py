"""Votes, and the questions that wait for a person."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from cardpicker.models import CanonicalCard, Card, CardPrintingTag, ReviewItem, VoteSource
from cardpicker.operations.admin.base import ReadOnlyAdmin, TypedTabularInline, link_to, titled
from cardpicker.operations.admin.work import run_link
from cardpicker.operations.formatting import NOTHING, clipped, percent, shortened, state_badge, table, when

MACHINES = (VoteSource.OCR, VoteSource.DEDUCTION)
SURVIVORS_SHOWN = 50
NO_PRINTING = "no such printing"


class ShowsVotes:
    """The columns of a vote, for its list, its page and a card's page."""

    @admin.display(description="vote")
    def opinion(self, obj: CardPrintingTag) -> SafeString | str:
        """The printing voted for, or that there is none."""
        return NO_PRINTING if obj.printing is None else link_to(obj.printing)

    @admin.display(description="voter", ordering="anonymous_id")
    def voter(self, obj: CardPrintingTag) -> str:
        """A person's name where one is known, else the voter's id."""
        return obj.user.get_username() if obj.user else obj.anonymous_id

    @admin.display(description="kind", ordering="source")
    def kind(self, obj: CardPrintingTag) -> SafeString:
        """Whether a person or a machine votes."""
        return state_badge(obj.get_source_display(), "" if obj.source in MACHINES else "busy")

    @admin.display(description="confidence", ordering="confidence")
    def sureness(self, obj: CardPrintingTag) -> str:
        """How sure a machine is."""
        return percent(obj.confidence)

    @admin.display(description="run", ordering="run_id")
    def run(self, obj: CardPrintingTag) -> SafeString | str:
        """Link to the run that cast the vote."""
        return run_link(obj.run_id)

    @admin.display(description="rests on")
    def grounds(self, obj: CardPrintingTag) -> SafeString | str:
        """What the vote rests on."""
        return table(obj.evidence)

    @admin.display(description="cast", ordering="updated_at")
    def cast(self, obj: CardPrintingTag) -> SafeString | str:
        """When the vote was cast or last changed."""
        return when(obj.updated_at)


@admin.register(CardPrintingTag)
class VoteAdmin(ShowsVotes, ReadOnlyAdmin[CardPrintingTag]):
    """Machines' votes are their own, and a person's vote changes what consensus says: neither is edited as a row."""

    list_display = ("card_link", "opinion", "sureness", "kind", "voter", "run", "cast")
    list_filter = (
        ("source", titled("kind", admin.ChoicesFieldListFilter)),
        ("is_no_match", titled(NO_PRINTING, admin.BooleanFieldListFilter)),
        ("anonymous_id", titled("voter", admin.AllValuesFieldListFilter)),
    )
    list_select_related = ("card", "printing__expansion", "user")
    search_fields = ("card__name", "printing__name", "anonymous_id", "run_id__exact")
    search_help_text = "Card's or printing's name, voter, or run"
    ordering = ("-pk",)
    fields = ("card_link", "opinion", "sureness", "kind", "voter", "run", "cast", "grounds")

    def get_list_filter(self, request: HttpRequest) -> tuple[object, ...]:  # type: ignore[override]
        """Offer single voters only while one is chosen: there are as many as there are people."""
        filters = tuple(self.list_filter)
        return filters if "anonymous_id" in request.GET else filters[:2]

    @admin.display(description="card", ordering="card__name")
    def card_link(self, obj: CardPrintingTag) -> SafeString | str:
        """Link to the card."""
        return link_to(obj.card, self.describe(obj))

    def describe(self, obj: CardPrintingTag) -> str:
        """Name the card rather than its id."""
        return shortened(obj.card.name) or f"card {obj.card_id}"


class VotesOfCard(ShowsVotes, TypedTabularInline[CardPrintingTag, Card]):
    """A card's votes on the card's page."""

    model = CardPrintingTag
    extra = 0
    can_delete = False
    verbose_name_plural = "votes"
    fields = ("opinion", "sureness", "kind", "voter", "run", "cast", "grounds")
    readonly_fields = fields
    ordering = ("-confidence", "pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[CardPrintingTag]:
        """Bring along what the columns name."""
        return super().get_queryset(request).select_related("card", "printing__expansion", "user")

    def has_add_permission(self, request: HttpRequest, obj: Card | None = None) -> bool:
        """Nobody adds."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Card | None = None) -> bool:
        """Nobody changes."""
        return False


@admin.register(ReviewItem)
class ReviewAdmin(ReadOnlyAdmin[ReviewItem]):
    """What the machines could not settle; votes answer it, not edits."""

    list_display = ("card_link", "reason", "short_detail", "possible", "order", "run", "since")
    list_filter = ("reason",)
    list_select_related = ("card",)
    search_fields = ("card__name", "detail", "run_id__exact")
    search_help_text = "Card's name, a word of the detail, or run"
    ordering = ("-answerability", "card_id")
    fields = ("card_link", "reason", "detail", "survivors_shown", "suggested", "order", "run", "since")

    @admin.display(description="card", ordering="card__name")
    def card_link(self, obj: ReviewItem) -> SafeString | str:
        """Link to the card."""
        return link_to(obj.card, self.describe(obj))

    def describe(self, obj: ReviewItem) -> str:
        """Name the card rather than its id."""
        return shortened(obj.card.name) or f"card {obj.card_id}"

    @admin.display(description="detail")
    def short_detail(self, obj: ReviewItem) -> SafeString | str:
        """The beginning of the detail."""
        return clipped(obj.detail, 120)

    @admin.display(description="still possible")
    def possible(self, obj: ReviewItem) -> int:
        """How many printings are left."""
        return len(obj.survivors or [])

    @admin.display(description="answerability", ordering="answerability")
    def order(self, obj: ReviewItem) -> int:
        """How readily a person can answer, 0 to 1000."""
        return obj.answerability

    @admin.display(description="may mean")
    def suggested(self, obj: ReviewItem) -> SafeString | str:
        """Names of the catalog that look like the card's, or whose art it shows."""
        rows = [(each["name"], each["by"], each["similarity"]) for each in obj.suggestions]
        return format_html_join("", "{} ({} {})<br>", rows) or NOTHING

    @admin.display(description="run", ordering="run_id")
    def run(self, obj: ReviewItem) -> SafeString | str:
        """Link to the run that gave up on the card."""
        return run_link(obj.run_id)

    @admin.display(description="since", ordering="updated_at")
    def since(self, obj: ReviewItem) -> SafeString | str:
        """When the question was last put."""
        return when(obj.updated_at)

    @admin.display(description="still possible")
    def survivors_shown(self, obj: ReviewItem) -> SafeString | str:
        """The printings left, best first."""
        return survivors(obj)


def survivors(item: ReviewItem) -> SafeString | str:
    """List the printings that are still possible, best first; one that has left the catalog keeps its id."""
    ids = list(item.survivors or [])[:SURVIVORS_SHOWN]
    if not ids:
        return "none"
    known = CanonicalCard.objects.select_related("expansion").in_bulk(ids)
    lines = [(link_to(known[pk]) if pk in known else f"printing {pk}, no longer known",) for pk in ids]
    more = len(item.survivors) - len(ids)
    if more:
        lines.append((f"and {more} more",))
    return format_html_join("", "{}<br>", lines)


def best_machine_vote(card: Card) -> CardPrintingTag | None:
    """Return the machine vote of most confidence among those that the list has fetched."""
    votes: list[CardPrintingTag] = getattr(card, "machine_votes", [])
    return max(votes, key=lambda vote: vote.confidence or 0.0, default=None)


def described(vote: CardPrintingTag | None) -> str:
    """Say what a vote says, in a few words."""
    if vote is None:
        return NOTHING
    if vote.printing is None:
        return NO_PRINTING
    return f"{vote.printing.expansion.code.upper()} {vote.printing.collector_number} [{vote.printing.language}]"
