"""What can go wrong with the catalog as a whole; a single bad record is a value, not an error."""

from __future__ import annotations


class CatalogueError(Exception):
    """Root of the catalog's errors; its text is one line for the operator."""


class BulkFileError(CatalogueError):
    """The bulk file cannot be read to its end, or holds no printings."""


class ServerRefusedError(BulkFileError):
    """The bulk file's server answered with an error."""

    def __init__(self, text: str, *, status: int, retry_after: str) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after  #: The header, as it came.


class ImportBusyError(CatalogueError):
    """Another import is running on this database."""
