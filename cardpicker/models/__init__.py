"""The tables: catalog, evidence, votes, operations."""

from __future__ import annotations

from cardpicker.models.art import ArtOutcome, CanonicalArt, CatalogVersion
from cardpicker.models.bulk import BulkRun
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
from cardpicker.models.fetching import FetchBudget, FetchClass, FetchOutcome
from cardpicker.models.operations import (
    CardWork,
    CatalogPass,
    EnvelopeBar,
    EnvelopeTrip,
    PilotRunLedger,
    RunStatus,
    StageEThrottleCounter,
)
from cardpicker.models.votes import (
    CardPrintingTag,
    ReviewItem,
    ReviewReason,
    SupersededVote,
    VoteChange,
    VoteSource,
)

__all__ = [
    "ArtOutcome",
    "BulkRun",
    "CanonicalArt",
    "CanonicalArtist",
    "CanonicalCard",
    "CanonicalExpansion",
    "Card",
    "CardPrintingTag",
    "CardType",
    "CardWork",
    "CatalogPass",
    "CatalogVersion",
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
    "SupersededVote",
    "VoteChange",
    "VoteSource",
]
