"""A listing kept on disk until it is known to be whole: only then may its first entry count."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Iterator
from types import TracebackType

from cardpicker.sources.kinds import ListedCard, ListingProblem


class Spool:
    """A temporary file of entries, a line each; entered as a context, it is gone at its end."""

    def __init__(self) -> None:
        # Closed by __exit__.
        self._file = tempfile.TemporaryFile("w+", prefix="cardpicker-listing-", encoding="utf-8")  # noqa: SIM115

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, entry: ListedCard | ListingProblem) -> None:
        """Keep an entry."""
        self._file.write(json.dumps([isinstance(entry, ListedCard), dataclasses.asdict(entry)]) + "\n")

    def entries(self) -> Iterator[ListedCard | ListingProblem]:
        """Yield what was kept, in order."""
        self._file.seek(0)
        for line in self._file:
            is_card, values = json.loads(line)
            yield ListedCard(**values) if is_card else ListingProblem(**values)
