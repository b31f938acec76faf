"""What a kind of source is, and the values its listing is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

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


class SourceKind(Protocol):
    """One kind of place that cards come from."""

    key: str

    def list_cards(self, source: Source) -> Iterable[ListedCard | ListingProblem]:
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
