"""The art of printings, and the count of the catalog's changes."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from cardpicker.models import ArtOutcome, CanonicalArt, CanonicalCard, CatalogVersion
from cardpicker.operations.admin.base import ReadOnlyAdmin, link_to
from cardpicker.operations.formatting import NOTHING, clipped, state_badge, when

TONES: dict[str, str] = {
    ArtOutcome.HASHED: "good",
    ArtOutcome.FAILED: "wait",
    ArtOutcome.GONE: "bad",
    ArtOutcome.UNUSABLE: "bad",
}
PRINTINGS_SHOWN = 50


@admin.register(CanonicalArt)
class ArtAdmin(ReadOnlyAdmin[CanonicalArt]):
    """What became of hashing each illustration; the command fills it, nobody edits it."""

    list_display = ("key", "state", "hash_hex", "short_detail", "attempts", "tried")
    list_filter = ("outcome",)
    search_fields = ("key",)
    search_help_text = "Id of the illustration"
    ordering = ("-pk",)
    fields = ("key", "state", "hash_hex", "kind", "detail", "attempts", "tried_uris", "tried", "printings")

    @admin.display(description="outcome", ordering="outcome")
    def state(self, obj: CanonicalArt) -> SafeString:
        """How the last try ended."""
        return state_badge(obj.get_outcome_display(), TONES.get(obj.outcome, ""))

    @admin.display(description="art hash")
    def hash_hex(self, obj: CanonicalArt) -> str:
        """The hash as its 16 digits."""
        return NOTHING if obj.art_hash is None else f"{obj.art_hash & (2**64 - 1):016x}"

    @admin.display(description="detail")
    def short_detail(self, obj: CanonicalArt) -> SafeString | str:
        """The beginning of the detail."""
        return clipped(obj.detail, 80)

    @admin.display(description="tried", ordering="tried_at")
    def tried(self, obj: CanonicalArt) -> SafeString | str:
        """When it was last tried."""
        return when(obj.tried_at)

    @admin.display(description="printings")
    def printings(self, obj: CanonicalArt) -> SafeString | str:
        """The printings that bear it."""
        bearers = CanonicalCard.objects.filter(
            Q(illustration_id=obj.key) | Q(illustration_id__isnull=True, identifier=obj.key)
        )
        rows = bearers.select_related("expansion").order_by("pk")[:PRINTINGS_SHOWN]
        return format_html_join("", "{}<br>", [(link_to(row),) for row in rows]) or NOTHING


@admin.register(CatalogVersion)
class CatalogVersionAdmin(ReadOnlyAdmin[CatalogVersion]):
    """One row: how often printings and art have changed."""

    list_display = ("printings", "art")
    fields = ("printings", "art")
