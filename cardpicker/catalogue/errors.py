"""What can go wrong with the catalog as a whole; a single bad record is a value, not an error."""

from __future__ import annotations


class CatalogueError(Exception):
    """Root of the catalog's errors; its text is one line for the operator."""


class BulkFileError(CatalogueError):
    """The bulk file cannot be read to its end, or holds no printings."""


class ImportBusyError(CatalogueError):
    """Another import is running on this database."""
