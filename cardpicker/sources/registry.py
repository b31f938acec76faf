"""The kinds of source there are: a new kind is one file and one line here."""

from __future__ import annotations

from cardpicker.sources.errors import UnknownKindError
from cardpicker.sources.google_drive import GoogleDrive
from cardpicker.sources.http_manifest import HttpManifest
from cardpicker.sources.kinds import SourceKind
from cardpicker.sources.local_folder import LocalFolder

KINDS: tuple[SourceKind, ...] = (LocalFolder(), HttpManifest(), GoogleDrive())


def kind_for(key: str) -> SourceKind:
    """Return the kind called ``key``.

    Raises:
        UnknownKindError: there is none.
    """
    for kind in KINDS:
        if kind.key == key:
            return kind
    raise UnknownKindError(f"no kind of source is called {key!r}; there are: {', '.join(kind.key for kind in KINDS)}")
