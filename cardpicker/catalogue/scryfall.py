"""Import of Scryfall's bulk file of real printings.

One transaction: the whole file is read and checked before the catalog is touched, so a damaged file, a kill or a
lost connection leaves the catalog as it was. Printings that the file no longer has are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from django.db import transaction

from cardpicker.catalogue import staging
from cardpicker.catalogue.bulk_file import BadRecord, Place, Record, read_bulk
from cardpicker.catalogue.bulk_record import BadPrintingError, Printing, parse_printing
from cardpicker.catalogue.errors import BulkFileError, ImportBusyError
from cardpicker.catalogue.version import raise_version

_BATCH_ROWS = 3_000
_NAMED_MAX = 20

#: Called with a verb, what is done, and the total where it is known.
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What an import did, in printings."""

    read: int
    new: int
    changed: int
    unchanged: int
    bad: int
    bad_named: tuple[BadRecord, ...]  #: The first of the bad records.
    repeated: int  #: Records whose id came again later in the file.
    repeated_named: tuple[str, ...]


@dataclass(slots=True)
class _Intake:
    """What has been taken from the file so far."""

    read: int = 0
    bad: int = 0
    bad_named: list[BadRecord] = field(default_factory=list)
    unit: str = "line"
    batch: list[tuple[int, Printing]] = field(default_factory=list)

    def reject(self, record: BadRecord) -> None:
        self.bad += 1
        if len(self.bad_named) < _NAMED_MAX:
            self.bad_named.append(record)

    def accept(self, place: Place, printing: Printing) -> None:
        self.read += 1
        self.unit = place.unit
        self.batch.append((place.number, printing))


def import_bulk(
    location: str,
    *,
    progress: Progress = lambda verb, done, total: None,
    on_touched: Callable[[Collection[str]], object] = lambda name_keys: None,
) -> ImportReport:
    """Bring the catalog up to the bulk file at ``location``, a path or an http(s) URL.

    Args:
        on_touched: given, within the import's transaction, the name keys of printings that are new or changed in what
            cards are judged by.

    Raises:
        BulkFileError: the file cannot be read to its end or holds no printing; nothing has changed.
        ImportBusyError: another import is running; nothing has changed.
    """
    with transaction.atomic():
        if not staging.take_import_lock():
            raise ImportBusyError("Another import of printings is running: wait for it to end, then run this again.")
        staging.create_staging()
        intake = _take_in(location, progress)
        repeated, places = staging.drop_repeated(_NAMED_MAX)
        for merged in staging.merge():
            progress("written", merged.done, merged.total)
        if touched := staging.touched_name_keys():
            on_touched(touched)
        if merged.done:
            raise_version(printings=True)
    return ImportReport(
        read=intake.read,
        new=merged.new,
        changed=merged.changed,
        unchanged=intake.read - repeated - merged.new - merged.changed,
        bad=intake.bad,
        bad_named=tuple(intake.bad_named),
        repeated=repeated,
        repeated_named=tuple(_describe_repeat(identifier, intake.unit, at) for identifier, at in places),
    )


def _describe_repeat(identifier: str, unit: str, places: list[int]) -> str:
    *dropped, kept = places
    return f"{unit} {', '.join(map(str, dropped))}: id {identifier} comes again in {unit} {kept}, which is kept"


def _take_in(location: str, progress: Progress) -> _Intake:
    """Read the file into the staging table."""
    intake = _Intake()
    for record in read_bulk(location):
        if isinstance(record, BadRecord):
            intake.reject(record)
            continue
        _take_record(intake, record)
        if len(intake.batch) >= _BATCH_ROWS:
            staging.stage(intake.batch)
            intake.batch.clear()
            progress("read", intake.read, None)
    staging.stage(intake.batch)
    if not intake.read:
        reasons = f" First: {intake.bad_named[0]}." if intake.bad_named else ""
        raise BulkFileError(f"{location}: no printing in it; {intake.bad} records are not usable.{reasons}")
    progress("read", intake.read, None)
    return intake


def _take_record(intake: _Intake, record: Record) -> None:
    try:
        intake.accept(record.place, parse_printing(record.value))
    except BadPrintingError as error:
        intake.reject(BadRecord(place=record.place, reason=str(error)))
