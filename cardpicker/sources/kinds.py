"""What a kind of source is, and the values its listing is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from cardpicker.models import Source

#: Called with a verb, what is done, and the total where it is known.
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCard:
    """One image as its source lists it."""

    identifier: str  #: The source's own name of the file, unique within the source.
    name: str
    image_version: str  #: Changes exactly when the image does.
    extension: str = ""
    size: int = 0
    md5_checksum: str | None = None
    sha256_checksum: str | None = None
    dpi: int | None = None  #: Where the listing tells the image's size and the image is the shape of a card.
    resource_key: str = ""  #: What the source wants to be shown with the identifier, where it has such a thing.


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingProblem:
    """Something the operator should know about one file or folder of a listing.

    ``shields`` is what the listing cannot speak for: an identifier, or a prefix ending in ``/``. Cards there are not
    taken for removed, because they may well be there.
    """

    where: str
    detail: str
    shields: str | None = None

    def __str__(self) -> str:
        return f"{self.where if self.where.isprintable() else ascii(self.where)}: {self.detail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingNote:
    """What a listing says of itself as a whole.

    ``state`` is kept with the source when the sync is done, and is what the kind finds there the next time: empty when
    the listing must be had as a whole.
    """

    detail: str = ""  #: For the operator; empty: nothing to tell.
    is_partial: bool = False  #: Cards that it leaves out are there still: nothing is taken for removed.
    state: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListingProgress:
    """How many files a listing that is not yet had as a whole has come upon."""

    done: int


Listing = Iterable[ListedCard | ListingProblem | ListingNote | ListingProgress]


class SourceKind(Protocol):
    """One kind of place that cards come from."""

    key: str

    def list_cards(self, source: Source) -> Listing:
        """List the images of ``source``, lazily.

        Raises:
            ListingError: the listing could not be had, before the first card where that is possible.
        """
        ...

    def image_location(self, source_location: str, identifier: str) -> str:
        """Return the URL of an image.

        Raises:
            UnsafeIdentifierError: the identifier leads out of the source.
        """
        ...


@runtime_checkable
class ListsChanges(Protocol):
    """A kind that can also list only what changed since the last time."""

    def list_changes(self, source: Source) -> Listing:
        """List what changed since the state that ``source`` keeps; all of it where that is not to be known.

        Raises:
            ListingError: as for ``list_cards``.
        """
        ...
