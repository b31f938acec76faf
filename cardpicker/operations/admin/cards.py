"""Cards: the image, what was read off it, who voted what, and where its work stands."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.db.models import Prefetch, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cardpicker.models import Card, CardPrintingTag, CardWork, PrintingTagStatus
from cardpicker.operations.admin.base import ByAddressFilter, ListAdmin, link_to, page_of, titled
from cardpicker.operations.admin.evidence import evidence_panel
from cardpicker.operations.admin.thumbnails import thumbnail
from cardpicker.operations.admin.votes import MACHINES, VotesOfCard, best_machine_vote, described, survivors
from cardpicker.operations.admin.work import AsksAgain, StateFilter, next_try, work_of, work_state
from cardpicker.operations.formatting import NOTHING, byte_size, clipped, percent, state_badge, table, when

TONES: dict[str, str] = {PrintingTagStatus.RESOLVED: "good", PrintingTagStatus.NO_MATCH: "busy"}


class WorkStateFilter(StateFilter):
    """Cards by the state of their work."""

    title = "work"
    prefix = "work__"


class RunOfCardFilter(ByAddressFilter):
    """Cards whose evidence a run read."""

    title = "run"
    parameter_name = "run"
    lookup = "evidence__run_id"


class PresentFilter(admin.SimpleListFilter):
    """Cards by whether their source still lists them."""

    title = "listing"
    parameter_name = "removed"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Listed or not."""
        return [("0", "Listed"), ("1", "No longer listed")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Card]) -> QuerySet[Card]:
        """Filter by removal."""
        if self.value() not in ("0", "1"):
            return queryset
        return queryset.filter(removed_at__isnull=self.value() == "0")


@admin.register(Card)
class CardAdmin(AsksAgain, ListAdmin[Card]):
    """Cards come and go with their source; a person may set a card's printing, and nothing else by hand."""

    list_display = ("short_name", "picture", "source", "work_shown", "status", "identified_as", "best_vote", "sureness")
    list_filter = (
        WorkStateFilter,
        ("printing_tag_status", titled("status", admin.ChoicesFieldListFilter)),
        "source",
        "card_type",
        PresentFilter,
        RunOfCardFilter,
    )
    list_select_related = ("source", "work", "inferred_canonical_card__expansion")
    search_fields = ("name", "identifier", "sha256_checksum__exact", "md5_checksum__exact")
    search_help_text = "Name, file or checksum"
    ordering = ("-pk",)
    actions = ("ask_for_cards_again",)
    autocomplete_fields = ("canonical_card",)
    inlines = (VotesOfCard,)
    fieldsets = (
        (None, {"fields": ("picture_large", "name", "source", "identifier", "card_type", "file", "presence")}),
        ("Printing", {"fields": ("status", "printing", "canonical_card")}),
        ("Work", {"fields": ("work_panel",)}),
        ("Review", {"fields": ("review_panel",)}),
        ("Evidence", {"fields": ("readings",)}),
        ("Checksums", {"classes": ("collapse",), "fields": ("image_version", "md5_checksum", "sha256_checksum")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Card]:
        """Bring along the machines' votes of the cards on the page, in one query."""
        votes = CardPrintingTag.objects.filter(source__in=MACHINES).select_related("printing__expansion")
        return super().get_queryset(request).prefetch_related(Prefetch("printing_tags", votes, to_attr="machine_votes"))

    def get_readonly_fields(self, request: HttpRequest, obj: Card | None = None) -> list[str]:
        """Return all fields but the printing that a person sets."""
        return [name for name in flatten_fieldsets(self.fieldsets) if name != "canonical_card"]

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Call the one field that is edited what it is."""
        if db_field.name == "canonical_card":
            kwargs["label"] = "Printing set by a person"
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Cards come from a sync."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Card | None = None) -> bool:
        """A card that its source no longer lists is kept."""
        return False

    def save_model(self, request: HttpRequest, obj: Card, form: Any, change: bool) -> None:
        """Write only what was edited: the pipeline may be writing the rest at this moment."""
        if form.changed_data:
            obj.save(update_fields=form.changed_data)

    @admin.action(description="Ask again: make the chosen cards due now", permissions=["ask"])
    def ask_for_cards_again(self, request: HttpRequest, queryset: QuerySet[Card]) -> None:
        """Make the work of the chosen cards due."""
        self.tell(request, CardWork.objects.filter(card__in=queryset.order_by().values("pk")))

    @admin.display(description="name", ordering="name")
    def short_name(self, obj: Card) -> SafeString | str:
        """The beginning of the name."""
        return clipped(obj.name or f"card {obj.pk}", 80)

    @admin.display(description="image")
    def picture(self, obj: Card) -> SafeString:
        """The image, small, leading to the card."""
        return format_html('<a href="{}" tabindex="-1">{}</a>', page_of(obj), thumbnail(obj))

    @admin.display(description="image")
    def picture_large(self, obj: Card) -> SafeString:
        """The image."""
        return thumbnail(obj, large=True)

    @admin.display(description="work")
    def work_shown(self, obj: Card) -> SafeString | str:
        """The state of the card's work."""
        return work_state(work_of(obj))

    @admin.display(description="status", ordering="printing_tag_status")
    def status(self, obj: Card) -> SafeString:
        """What consensus made of the votes."""
        return state_badge(obj.get_printing_tag_status_display(), TONES.get(obj.printing_tag_status, ""))

    @admin.display(description="identified as")
    def identified_as(self, obj: Card) -> str:
        """The printing by consensus, in short."""
        printing = obj.inferred_canonical_card
        return NOTHING if printing is None else f"{printing.expansion.code.upper()} {printing.collector_number}"

    @admin.display(description="best machine vote")
    def best_vote(self, obj: Card) -> str:
        """The machine vote of most confidence, in short."""
        return described(best_machine_vote(obj))

    @admin.display(description="confidence")
    def sureness(self, obj: Card) -> str:
        """How sure the best machine vote is."""
        vote = best_machine_vote(obj)
        return percent(vote.confidence if vote else None)

    @admin.display(description="file")
    def file(self, obj: Card) -> str:
        """Type, size and resolution."""
        dpi = f"{obj.dpi} dpi" if obj.dpi else ""
        return ", ".join(filter(None, (obj.extension.upper(), byte_size(obj.size), dpi)))

    @admin.display(description="in its source")
    def presence(self, obj: Card) -> SafeString:
        """Since when the card has been known, or gone."""
        if obj.removed_at is not None:
            return format_html("no longer listed since {}", when(obj.removed_at))
        return format_html("since {}", when(obj.created_at))

    @admin.display(description="printing by consensus")
    def printing(self, obj: Card) -> SafeString | str:
        """Link to the printing that consensus made of the votes."""
        return link_to(obj.inferred_canonical_card)

    @admin.display(description="work")
    def work_panel(self, obj: Card) -> SafeString | str:
        """Where the card's work stands, and a link to it."""
        work = work_of(obj)
        if work is None:
            return "This card has never been due."
        facts = {
            "why it became due": work.reason.replace("-", " ") or None,
            "last outcome": work.last_outcome.replace("-", " ") or None,
            "last detail": work.last_detail or None,
            "attempts": work.attempts,
        }
        return format_html(
            "{} &nbsp; next try: {} &nbsp; {}{}",
            work_state(work),
            next_try(work),
            link_to(work, "Open the work"),
            table(facts, keep_order=True),
        )

    @admin.display(description="review")
    def review_panel(self, obj: Card) -> SafeString | str:
        """The question to a person, if there is one."""
        item = getattr(obj, "review_item", None)
        if item is None:
            return "No question is open."
        return format_html(
            "{}{} &nbsp; {}<br>{}",
            item.get_reason_display(),
            f": {item.detail}" if item.detail else "",
            link_to(item, "Open the question"),
            survivors(item),
        )

    @admin.display(description="evidence")
    def readings(self, obj: Card) -> SafeString | str:
        """The readings as aligned tables."""
        return evidence_panel(getattr(obj, "evidence", None))
