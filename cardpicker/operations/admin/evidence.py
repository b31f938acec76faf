"""Evidence: what was read off each image."""

from __future__ import annotations

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cardpicker.models import ImageEvidence
from cardpicker.operations.admin.base import ReadOnlyAdmin, link_to
from cardpicker.operations.admin.thumbnails import thumbnail
from cardpicker.operations.admin.work import run_link
from cardpicker.operations.formatting import NOTHING, duration, shortened, state_badge, tables_by_extractor, when
from cardpicker.stage_c.extractors.registry import EXTRACTORS, manifest


@admin.register(ImageEvidence)
class EvidenceAdmin(ReadOnlyAdmin[ImageEvidence]):
    """Readings are facts about an image; the pipeline replaces them when the image or the extractors change."""

    list_display = ("card_link", "picture", "set_shown", "number", "size_px", "currency", "took", "run", "stored")
    list_filter = ("rendition", "manifest")
    list_select_related = ("card__source",)
    search_fields = ("card__name", "set_code__iexact", "collector_number__iexact", "run_id__exact")
    search_help_text = "Card's name, set code, collector number or run"
    ordering = ("-pk",)
    fieldsets = (
        (None, {"fields": ("card_link", "picture_large", "currency", "set_shown", "number", "size_px", "hash_hex")}),
        ("Readings", {"fields": ("readings_shown",)}),
        (
            "Origin",
            {"fields": ("rendition", "run", "copied_from", "took", "stored", "manifest", "judged_by", "image_sha256")},
        ),
    )

    @admin.display(description="card", ordering="card__name")
    def card_link(self, obj: ImageEvidence) -> SafeString | str:
        """Link to the card."""
        return link_to(obj.card, self.describe(obj))

    def describe(self, obj: ImageEvidence) -> str:
        """Name the card rather than its id."""
        return shortened(obj.card.name) or f"card {obj.card_id}"

    @admin.display(description="image")
    def picture(self, obj: ImageEvidence) -> SafeString:
        """The card's image, small."""
        return thumbnail(obj.card)

    @admin.display(description="image")
    def picture_large(self, obj: ImageEvidence) -> SafeString:
        """The card's image."""
        return thumbnail(obj.card, large=True)

    @admin.display(description="set", ordering="set_code")
    def set_shown(self, obj: ImageEvidence) -> str:
        """The set code read, in capitals."""
        return obj.set_code.upper() or NOTHING

    @admin.display(description="number", ordering="collector_number")
    def number(self, obj: ImageEvidence) -> str:
        """The collector number read."""
        return obj.collector_number or NOTHING

    @admin.display(description="image size (px)")
    def size_px(self, obj: ImageEvidence) -> str:
        """Width and height."""
        return f"{obj.width_px} × {obj.height_px}" if obj.width_px else NOTHING

    @admin.display(description="art hash")
    def hash_hex(self, obj: ImageEvidence) -> str:
        """The hash as its 16 digits."""
        return NOTHING if obj.art_hash is None else f"{obj.art_hash & (2**64 - 1):016x}"

    @admin.display(description="holds")
    def currency(self, obj: ImageEvidence) -> SafeString:
        """Whether the evidence is of today's image and by today's extractors."""
        return evidence_currency(obj)

    @admin.display(description="took", ordering="elapsed_ms")
    def took(self, obj: ImageEvidence) -> str:
        """From the start of the fetch to stored evidence."""
        return duration(obj.elapsed_ms / 1000) if obj.elapsed_ms else NOTHING

    @admin.display(description="run", ordering="run_id")
    def run(self, obj: ImageEvidence) -> SafeString | str:
        """Link to the run that read the image."""
        return run_link(obj.run_id)

    @admin.display(description="stored", ordering="created_at")
    def stored(self, obj: ImageEvidence) -> SafeString | str:
        """When the evidence was stored first."""
        return when(obj.created_at)

    @admin.display(description="copied from")
    def copied_from(self, obj: ImageEvidence) -> SafeString | str:
        """Link to the byte-identical card whose evidence this is."""
        return link_to(obj.transferred_from)

    @admin.display(description="readings")
    def readings_shown(self, obj: ImageEvidence) -> SafeString | str:
        """The readings as aligned tables."""
        return readings_table(obj)


def evidence_currency(evidence: ImageEvidence) -> SafeString:
    """Show whether evidence is current, and if not, why."""
    if evidence.image_version != evidence.card.image_version:
        return state_badge("of an earlier image", "bad")
    if evidence.manifest != manifest():
        return state_badge("by earlier extractors", "wait")
    return state_badge("current", "good")


def evidence_panel(evidence: ImageEvidence | None) -> SafeString | str:
    """Show a card's evidence on the card's own page."""
    if evidence is None:
        return "Nothing has been read off this image yet."
    original = evidence.transferred_from
    origin = format_html("copied from {}", link_to(original, shortened(original.name))) if original else "read"
    return format_html(
        "{} {} by run {} in {}, {} &nbsp; {}{}",
        evidence_currency(evidence),
        origin,
        run_link(evidence.run_id),
        duration(evidence.elapsed_ms / 1000),
        when(evidence.created_at),
        link_to(evidence, "Open the evidence"),
        readings_table(evidence),
    )


def readings_table(evidence: ImageEvidence) -> SafeString | str:
    """Show the readings in the order in which the extractors run."""
    return tables_by_extractor(evidence.readings, evidence.extractor_versions, [each.name for each in EXTRACTORS])
