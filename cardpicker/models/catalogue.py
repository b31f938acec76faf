"""What is catalogued: sources and their cards, and the real printings that cards may show."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

NAME_MAX_LENGTH = 500
IDENTIFIER_MAX_LENGTH = 1000


class CardType(models.TextChoices):
    """What kind of object an image is catalogued as."""

    CARD = "CARD", "Card"
    CARDBACK = "CARDBACK", "Card back"
    TOKEN = "TOKEN", "Token"


class PrintingTagStatus(models.TextChoices):
    """What consensus made of a card's votes."""

    UNRESOLVED = "UNRESOLVED", "Unresolved"
    RESOLVED = "RESOLVED", "Resolved"
    NO_MATCH = "NO_MATCH", "No such printing"


class Source(models.Model):
    """A place that cards come from."""

    key = models.SlugField(max_length=100, unique=True)
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=50, help_text="A kind of the source registry, such as local_folder.")
    location = models.CharField(
        max_length=IDENTIFIER_MAX_LENGTH, help_text="The folder's path or the listing's address."
    )
    enabled = models.BooleanField(default=True)
    last_synced_at = models.DateTimeField(null=True, blank=True)
    last_sync_report = models.JSONField(default=dict, blank=True)
    held_removals = models.PositiveIntegerField(
        default=0, help_text="Cards missing from the last listing that await --confirm-removals."
    )
    listing_state = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        editable=False,
        help_text="What the kind remembers of the last listing, such as its ETag.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name or self.key


class CanonicalExpansion(models.Model):
    """A set of real cards."""

    code = models.CharField(max_length=10, unique=True, help_text="Lower case, as Scryfall spells it.")
    name = models.CharField(max_length=200)
    released_at = models.DateField(null=True, blank=True)

    class Meta:
        verbose_name = "expansion"
        ordering = ["code"]

    def __str__(self) -> str:
        return f"{self.name} ({self.code.upper()})"


class CanonicalArtist(models.Model):
    """An artist as credited on real cards."""

    name = models.CharField(max_length=200, unique=True)

    class Meta:
        verbose_name = "artist"
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class CanonicalCard(models.Model):
    """A printing: one real card of one set, number and language."""

    identifier = models.UUIDField(unique=True, help_text="Scryfall's id of this printing.")
    oracle_id = models.UUIDField(null=True, blank=True, db_index=True)
    name = models.CharField(max_length=NAME_MAX_LENGTH, help_text="All faces, as in 'Fire // Ice'.")
    name_key = models.CharField(max_length=NAME_MAX_LENGTH, db_index=True)
    name_keys = ArrayField(
        models.CharField(max_length=NAME_MAX_LENGTH),
        default=list,
        help_text="Every key this printing can be found by: the full name, each face, the printed name.",
    )
    artist = models.ForeignKey(
        CanonicalArtist, on_delete=models.PROTECT, related_name="printings", null=True, blank=True
    )
    expansion = models.ForeignKey(CanonicalExpansion, on_delete=models.PROTECT, related_name="printings")
    collector_number = models.CharField(max_length=30)
    language = models.CharField(max_length=10)
    rarity = models.CharField(max_length=20, blank=True)
    released_at = models.DateField(null=True, blank=True)
    frame = models.CharField(max_length=20, blank=True)
    border_color = models.CharField(max_length=20, blank=True)
    layout = models.CharField(max_length=40, blank=True)
    promo_types = ArrayField(models.CharField(max_length=50), default=list, blank=True)
    illustration_id = models.UUIDField(null=True, blank=True, db_index=True)
    image_uri = models.CharField(max_length=IDENTIFIER_MAX_LENGTH, blank=True)
    art_hash = models.BigIntegerField(
        null=True, blank=True, help_text="Signed 64-bit pHash of the art box; empty where unknown or flat, never 0."
    )

    class Meta:
        verbose_name = "printing"
        ordering = ["expansion__code", "collector_number", "language"]
        indexes = [
            # Without a list of pending entries, which every look-up would scan from an import until the next vacuum.
            GinIndex(fields=["name_keys"], name="printing_name_keys", fastupdate=False),
            models.Index(fields=["expansion", "collector_number"], name="printing_set_number"),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(art_hash__isnull=True) | ~Q(art_hash=0), name="printing_art_hash_not_0")
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.expansion.code.upper()}) {self.collector_number} [{self.language}]"


class CardQuerySet(models.QuerySet["Card"]):
    """Cards by what became of them."""

    def present(self) -> CardQuerySet:
        """Cards that their source still lists."""
        return self.filter(removed_at__isnull=True)


class Card(models.Model):
    """One uploaded image. A card that its source no longer lists is kept, with ``removed_at``, and loses nothing."""

    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="cards")
    identifier = models.CharField(max_length=IDENTIFIER_MAX_LENGTH, help_text="The source's own name of the file.")
    name = models.CharField(max_length=NAME_MAX_LENGTH)
    name_key = models.CharField(max_length=NAME_MAX_LENGTH, db_index=True, blank=True)
    name_hints = models.JSONField(
        default=dict,
        db_default={},
        blank=True,
        help_text="What brackets in the name say of set, number, artist and language; never taken for truth.",
    )
    card_type = models.CharField(max_length=10, choices=CardType, default=CardType.CARD)
    extension = models.CharField(max_length=10, blank=True)
    size = models.PositiveBigIntegerField(default=0, help_text="Bytes.")
    dpi = models.PositiveIntegerField(null=True, blank=True)
    # Null is "the source does not say", which an index leaves out.
    md5_checksum = models.CharField(max_length=32, null=True, blank=True)  # noqa: DJ001
    sha256_checksum = models.CharField(max_length=64, null=True, blank=True)  # noqa: DJ001
    resource_key = models.CharField(
        max_length=100, blank=True, db_default="", default="", help_text="Asked for by some older Google Drive files."
    )
    image_version = models.CharField(
        max_length=100, help_text="Changes exactly when the image does: a checksum where there is one."
    )
    canonical_card = models.ForeignKey(
        CanonicalCard,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="known_cards",
        help_text="The printing as a person set it; the pipeline never writes it.",
    )
    inferred_canonical_card = models.ForeignKey(
        CanonicalCard,
        on_delete=models.RESTRICT,
        null=True,
        blank=True,
        related_name="inferred_cards",
        help_text="The printing that consensus made of the votes.",
    )
    printing_tag_status = models.CharField(
        max_length=10, choices=PrintingTagStatus, default=PrintingTagStatus.UNRESOLVED, db_index=True
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    removed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = CardQuerySet.as_manager()

    class Meta:
        ordering = ["name", "pk"]
        indexes = [
            models.Index(fields=["sha256_checksum"], name="card_sha256", condition=Q(sha256_checksum__isnull=False)),
            models.Index(fields=["md5_checksum"], name="card_md5", condition=Q(md5_checksum__isnull=False)),
        ]
        constraints = [
            models.UniqueConstraint(fields=["source", "identifier"], name="card_source_identifier"),
            models.CheckConstraint(condition=~Q(image_version=""), name="card_image_version_set"),
            models.CheckConstraint(
                condition=Q(printing_tag_status="RESOLVED", inferred_canonical_card__isnull=False)
                | (~Q(printing_tag_status="RESOLVED") & Q(inferred_canonical_card__isnull=True)),
                name="card_resolved_has_printing",
            ),
        ]

    def __str__(self) -> str:
        return self.name
