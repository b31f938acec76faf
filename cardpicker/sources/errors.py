"""What can go wrong with a source as a whole; a single bad file is a value, not an error."""

from __future__ import annotations


class SourceError(Exception):
    """Root of the sources' errors; its text is one line for the operator."""


class UnknownKindError(SourceError, LookupError):
    """No kind of that name is registered."""


class UnsafeIdentifierError(SourceError, ValueError):
    """An identifier leads out of its source."""


class ListingError(SourceError):
    """The listing could not be had; nothing may be concluded from what is missing in it."""


class UnknownSourceError(SourceError):
    """The sources asked for are not there, or may not be synced."""
