"""Sources, and the printings that cards may show."""

from __future__ import annotations

import uuid
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Count, Field, Q, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from cardpicker.models import (
    CanonicalArtist,
    CanonicalCard,
    CanonicalExpansion,
    Card,
    CardPrintingTag,
    CardWork,
    Source,
)
from cardpicker.operations.admin.base import ListAdmin, ReadOnlyAdmin, link_to_list
from cardpicker.operations.formatting import NOTHING, table, when
from cardpicker.sources.registry import KINDS


@admin.register(Source)
class SourceAdmin(ListAdmin[Source]):
    """Sources may be added and switched off here; one that has cards stays."""

    list_display = ("name", "key", "kind", "enabled", "cards_now", "last_sync", "held_removals")
    list_filter = ("enabled", "kind")
    search_fields = ("name", "key", "location")
    ordering = ("name",)
    readonly_fields = ("cards_now", "work_links", "last_sync", "sync_report", "held_removals")
    fieldsets = (
        (None, {"fields": ("name", "key", "kind", "location", "enabled", "cards_now", "work_links")}),
        ("Last sync", {"fields": ("last_sync", "held_removals", "sync_report")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        """Count the cards along with the sources."""
        present = Count("cards", filter=Q(cards__removed_at__isnull=True))
        return super().get_queryset(request).annotate(card_count=present)

    def formfield_for_dbfield(self, db_field: Field[Any, Any], request: HttpRequest, **kwargs: Any) -> Any:
        """Offer the kinds that exist."""
        if db_field.name == "kind":
            return forms.ChoiceField(choices=[(kind.key, kind.key.replace("_", " ")) for kind in KINDS])
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Source, form: Any, change: bool) -> None:
        """Write only what was edited: a sync may be writing its report at this moment."""
        obj.save(update_fields=form.changed_data if change else None)

    @admin.display(description="cards", ordering="card_count")
    def cards_now(self, obj: Source) -> SafeString | str:
        """Link to the cards that the source lists now."""
        if obj._state.adding:
            return NOTHING
        return link_to_list(Card, str(getattr(obj, "card_count", 0)), source__id__exact=obj.pk)

    @admin.display(description="work")
    def work_links(self, obj: Source) -> SafeString | str:
        """Link to the source's cards that failed for good."""
        if obj._state.adding:
            return NOTHING
        return link_to_list(CardWork, "Quarantined cards", state="quarantined", card__source__id__exact=obj.pk)

    @admin.display(description="last sync", ordering="last_synced_at")
    def last_sync(self, obj: Source) -> SafeString | str:
        """When the source was last listed."""
        return when(obj.last_synced_at)

    @admin.display(description="report")
    def sync_report(self, obj: Source) -> SafeString | str:
        """What the last sync did."""
        return table(obj.last_sync_report)


@admin.register(CanonicalExpansion)
class ExpansionAdmin(ReadOnlyAdmin[CanonicalExpansion]):
    """Sets, as imported."""

    list_display = ("name", "code_as_printed", "released_at", "printings")
    search_fields = ("name", "code")
    date_hierarchy = "released_at"
    ordering = ("-released_at", "code")
    fields = ("name", "code_as_printed", "released_at", "printings")

    def get_queryset(self, request: HttpRequest) -> QuerySet[CanonicalExpansion]:
        """Count the printings along with the sets."""
        return super().get_queryset(request).annotate(printing_count=Count("printings"))

    @admin.display(description="code", ordering="code")
    def code_as_printed(self, obj: CanonicalExpansion) -> str:
        """The code in capitals, as cards bear it."""
        return obj.code.upper()

    @admin.display(description="printings", ordering="printing_count")
    def printings(self, obj: CanonicalExpansion) -> SafeString:
        """Link to the set's printings."""
        return link_to_list(CanonicalCard, str(getattr(obj, "printing_count", 0)), expansion__id__exact=obj.pk)


@admin.register(CanonicalArtist)
class ArtistAdmin(ReadOnlyAdmin[CanonicalArtist]):
    """Artists, as imported."""

    list_display = ("name", "printings")
    search_fields = ("name",)
    fields = ("name", "printings")

    def get_queryset(self, request: HttpRequest) -> QuerySet[CanonicalArtist]:
        """Count the printings along with the artists."""
        return super().get_queryset(request).annotate(printing_count=Count("printings"))

    @admin.display(description="printings", ordering="printing_count")
    def printings(self, obj: CanonicalArtist) -> SafeString:
        """Link to the artist's printings."""
        return link_to_list(CanonicalCard, str(getattr(obj, "printing_count", 0)), artist__id__exact=obj.pk)


@admin.register(CanonicalCard)
class PrintingAdmin(ReadOnlyAdmin[CanonicalCard]):
    """Printings, as imported: an edit would be undone by the next import."""

    list_display = ("name", "set_code", "collector_number", "language", "artist", "rarity", "released_at")
    list_filter = ("language", "rarity", "border_color", "frame")
    list_select_related = ("expansion", "artist")
    search_fields = ("name", "collector_number", "expansion__code__iexact", "artist__name")
    search_help_text = "Name, set code, collector number, artist or Scryfall's id"
    date_hierarchy = "released_at"
    ordering = ("-released_at", "-pk")
    fieldsets = (
        (None, {"fields": ("name", "expansion", "collector_number", "language", "rarity", "artist", "released_at")}),
        ("Looks", {"fields": ("frame", "border_color", "layout", "promotions", "art_hash_hex")}),
        ("Found by", {"fields": ("keys", "identifier", "oracle_id", "illustration_id", "image_uri")}),
        ("Cards", {"fields": ("cards", "votes")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[CanonicalCard]:
        """Bring the set along: a printing's own text names it."""
        return super().get_queryset(request).select_related("expansion", "artist")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[CanonicalCard], search_term: str
    ) -> tuple[QuerySet[CanonicalCard], bool]:
        """Find the one printing that Scryfall's id names, or what the words fit."""
        try:
            return queryset.filter(identifier=uuid.UUID(search_term.strip())), False
        except ValueError:
            return super().get_search_results(request, queryset, search_term)

    @admin.display(description="set", ordering="expansion__code")
    def set_code(self, obj: CanonicalCard) -> str:
        """The set's code in capitals."""
        return obj.expansion.code.upper()

    @admin.display(description="promotions")
    def promotions(self, obj: CanonicalCard) -> str:
        """Kinds of promotion, in words."""
        return ", ".join(obj.promo_types) or NOTHING

    @admin.display(description="art hash")
    def art_hash_hex(self, obj: CanonicalCard) -> str:
        """The hash as its 16 digits."""
        return NOTHING if obj.art_hash is None else f"{obj.art_hash & (2**64 - 1):016x}"

    @admin.display(description="name keys")
    def keys(self, obj: CanonicalCard) -> str:
        """Every key, separated by commas."""
        return ", ".join(obj.name_keys) or NOTHING

    @admin.display(description="identified cards")
    def cards(self, obj: CanonicalCard) -> SafeString:
        """Link to the cards that consensus says show this printing."""
        return link_to_list(Card, "Cards that show it", inferred_canonical_card__id__exact=obj.pk)

    @admin.display(description="votes")
    def votes(self, obj: CanonicalCard) -> SafeString:
        """Link to the votes for this printing."""
        return link_to_list(CardPrintingTag, "Votes for it", printing__id__exact=obj.pk)
