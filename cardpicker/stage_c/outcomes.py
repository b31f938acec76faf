"""What can become of a fetch and of a card in Stage C: closed sets of types that callers match exhaustively."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class UnusableKind(StrEnum):
    """Why bytes that arrived are not an image to read."""

    EMPTY = "empty"
    NOT_AN_IMAGE = "not-an-image"
    UNSUPPORTED_TYPE = "unsupported-type"
    TRUNCATED = "truncated"
    CORRUPT = "corrupt"
    TOO_MANY_PIXELS = "too-many-pixels"
    TOO_MANY_BYTES = "too-many-bytes"
    TOO_SMALL = "too-small"
    BAD_IDENTIFIER = "bad-identifier"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The image's bytes, whole as far as the transport can tell."""

    body: bytes
    sha256: str  #: Lower-case hex of ``body``.


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttled:
    """The destination asks for patience (429, 503): pressure, never a failure."""

    detail: str
    retry_after_s: float | None = None
    is_ours: bool = False  #: Our own budget was spent; the destination was not asked.


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedOut:
    """The destination refuses us, not this file: everything stops until a person looks."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """This one file is missing or forbidden; it may come back."""

    detail: str
    refused: bool = False  #: An answer that over several files in a row means a lockout.


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """Bytes arrived and are no image that can be read; the same bytes will never be."""

    kind: UnusableKind
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A transient failure: time-out, broken connection, short body, changed bytes. Worth another try."""

    detail: str


class LeaseLostError(Exception):
    """The card is no longer this batch's to settle: raised inside the transaction that would store its result."""


FetchOutcome = Fetched | Throttled | LockedOut | Gone | Unusable | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Evidence was read off the image and committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """Evidence was copied from a byte-identical card whose evidence is current."""

    from_card_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AlreadyCurrent:
    """The card's evidence was current before anything was fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """The compute process died or overran its time on this image, and on no other."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """The card was not started, or its result was given up, because the run stopped; it lost nothing."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGone:
    """The card was deleted, removed from its source, or its image replaced while it was in flight."""

    detail: str


CardOutcome = (
    Stored
    | Transferred
    | AlreadyCurrent
    | Throttled
    | LockedOut
    | Gone
    | Unusable
    | Failed
    | Crashed
    | Deferred
    | CardGone
)
