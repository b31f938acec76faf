"""The tables: catalogue, evidence, votes, operations."""

from __future__ import annotations

from cardpicker.models.catalogue import (
    CanonicalArtist,
    CanonicalCard,
    CanonicalExpansion,
    Card,
    CardType,
    PrintingTagStatus,
    Source,
)
from cardpicker.models.evidence import ImageEvidence
from cardpicker.models.operations import (
    CardWork,
    CatalogPass,
    EnvelopeBar,
    EnvelopeTrip,
    FetchBudget,
    FetchClass,
    FetchOutcome,
    PilotRunLedger,
    RunStatus,
    StageEThrottleCounter,
)
from cardpicker.models.votes import CardPrintingTag, ReviewItem, ReviewReason, VoteSource

__all__ = [
    "CanonicalArtist",
    "CanonicalCard",
    "CanonicalExpansion",
    "Card",
    "CardPrintingTag",
    "CardType",
    "CardWork",
    "CatalogPass",
    "EnvelopeBar",
    "EnvelopeTrip",
    "FetchBudget",
    "FetchClass",
    "FetchOutcome",
    "ImageEvidence",
    "PilotRunLedger",
    "PrintingTagStatus",
    "ReviewItem",
    "ReviewReason",
    "RunStatus",
    "Source",
    "StageEThrottleCounter",
    "VoteSource",
]
