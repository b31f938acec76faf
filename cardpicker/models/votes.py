"""Opinions on a card's printing, and the questions that only people can answer."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from cardpicker.models.catalogue import CanonicalCard, Card


class VoteSource(models.TextChoices):
    """Who a voter is; its weight follows from that."""

    USER = "USER", "User"
    ADMIN = "ADMIN", "Admin"
    OCR = "OCR", "Machine, read"
    DEDUCTION = "DEDUCTION", "Machine, deduced"


class CardPrintingTag(models.Model):
    """One voter's live vote on a card: a printing, or that no such printing exists."""

    card = models.ForeignKey(Card, on_delete=models.CASCADE, related_name="printing_tags")
    printing = models.ForeignKey(
        CanonicalCard, on_delete=models.CASCADE, null=True, blank=True, related_name="printing_tags"
    )
    is_no_match = models.BooleanField(default=False)
    anonymous_id = models.CharField(max_length=64, help_text="The voter: a calculator's name, or a person's id.")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="printing_tags"
    )
    source = models.CharField(max_length=10, choices=VoteSource)
    confidence = models.FloatField(null=True, blank=True, help_text="0 to 1; empty for people.")
    evidence = models.JSONField(default=dict, blank=True, help_text="What the vote rests on, in short.")
    image_version = models.CharField(
        max_length=100,
        blank=True,
        default="",
        db_default="",
        help_text="The image that the vote is about: it counts while the card has it. Empty: whichever the card has.",
    )
    run_id = models.CharField(max_length=64, blank=True, db_index=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = "vote"
        constraints = [
            models.UniqueConstraint(fields=["card", "anonymous_id"], name="vote_one_per_card_and_voter"),
            models.CheckConstraint(
                condition=Q(printing__isnull=False, is_no_match=False) | Q(printing__isnull=True, is_no_match=True),
                name="vote_printing_xor_no_match",
            ),
            models.CheckConstraint(
                condition=Q(confidence__isnull=True) | Q(confidence__gte=0, confidence__lte=1),
                name="vote_confidence_0_to_1",
            ),
            models.CheckConstraint(condition=~Q(anonymous_id=""), name="vote_has_voter"),
        ]

    def __str__(self) -> str:
        return f"{self.anonymous_id}: {'no such printing' if self.is_no_match else self.printing}"


class VoteChange(models.TextChoices):
    """Why a vote is no longer live."""

    REPLACED = "REPLACED", "The voter votes otherwise"
    WITHDRAWN = "WITHDRAWN", "The calculator says nothing any more"
    RETRACTED = "RETRACTED", "The person took it back"
    RUN_RETRACTED = "RUN_RETRACTED", "An operator retracted the run"
    PURGED = "PURGED", "An operator purged machine votes"
    DELETED = "DELETED", "Deleted by other means"


class SupersededVote(models.Model):
    """A vote that was live once, as it was. Written by a trigger of the database, whoever changes the votes.

    Its card and printing may be gone: the trail outlives what it speaks of, so neither is enforced.
    """

    card = models.ForeignKey(Card, on_delete=models.DO_NOTHING, db_constraint=False, related_name="superseded_votes")
    printing = models.ForeignKey(
        CanonicalCard, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, null=True, related_name="+"
    )
    is_no_match = models.BooleanField()
    anonymous_id = models.CharField(max_length=64)
    source = models.CharField(max_length=10, choices=VoteSource)
    confidence = models.FloatField(null=True)
    evidence = models.JSONField(default=dict)
    image_version = models.CharField(max_length=100, blank=True)
    run_id = models.CharField(max_length=64, blank=True, db_index=True, help_text="The run that had cast it.")
    cast_at = models.DateTimeField()
    change = models.CharField(max_length=15, choices=VoteChange)
    changed_by_run_id = models.CharField(max_length=64, blank=True, help_text="The run that ended it.")
    superseded_at = models.DateTimeField()

    class Meta:
        verbose_name = "superseded vote"
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.anonymous_id} on card {self.card_id}, {self.get_change_display().lower()}"


class ReviewReason(models.TextChoices):
    """Why a card needs a person."""

    AMBIGUOUS = "AMBIGUOUS", "Several printings fit"
    NO_TEXT = "NO_TEXT", "Nothing readable"
    UNKNOWN_NAME = "UNKNOWN_NAME", "No printing has this name"
    UNKNOWN_SET = "UNKNOWN_SET", "The set code read is not in the catalog"
    CONTRADICTION = "CONTRADICTION", "Readings contradict each other"
    UNCONFIRMED = "UNCONFIRMED", "A machine's answer awaits a person"


class ReviewItem(models.Model):
    """A question to a person: why the machines could not settle the card, and between which printings."""

    card = models.OneToOneField(Card, on_delete=models.CASCADE, related_name="review_item")
    reason = models.CharField(max_length=20, choices=ReviewReason)
    detail = models.CharField(max_length=500, blank=True)
    survivors = ArrayField(
        models.BigIntegerField(), default=list, blank=True, help_text="Ids of the printings still possible, best first."
    )
    suggestions = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="Names of the catalog that may be meant where none is the card's, best first; never voted for.",
    )
    answerability = models.PositiveSmallIntegerField(
        default=0,
        db_default=0,
        help_text="0 to 1000: how readily a person can answer; questions are put in this order.",
    )
    run_id = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            models.Index(fields=["reason", "card"], name="review_reason"),
            models.Index(fields=["-answerability", "card"], name="review_order"),
        ]

    def __str__(self) -> str:
        return f"{self.get_reason_display()}: card {self.card_id}"
