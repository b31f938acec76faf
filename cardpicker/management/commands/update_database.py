"""Sources into cards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.progress import ProgressLine
from cardpicker.models import CardWork, Source
from cardpicker.operations.text_table import format_table
from cardpicker.sources.adding import ADDRESSES, add_source
from cardpicker.sources.errors import SourceError
from cardpicker.sources.kinds import Progress
from cardpicker.sources.report import SyncReport
from cardpicker.sources.update import NotSynced, Synced, SyncOptions, choose_sources
from cardpicker.stage_e.requests import request_dispatch
from cardpicker.stage_e.source_sync import sync_each

_PROBLEMS_SHOWN = 20


class Command(BaseCommand):
    """Exit codes: 0 every source was synced; 1 wrong use, or a source failed."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Sync the enabled sources into cards; safe to run again. A card gone from its source keeps everything."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare which sources, and what may be removed."""
        parser.add_argument(
            "--source", action="append", default=[], metavar="KEY", help="only this source; may be given again"
        )
        added = parser.add_mutually_exclusive_group()
        added.add_argument("--add-folder", metavar="PATH", help="add a folder of images as a source first")
        added.add_argument(
            "--add-manifest", metavar="PATH|URL", help="add a list of names and image URLs, CSV or JSON lines"
        )
        added.add_argument("--add-drive", metavar="ID|LINK", help="add a folder of Google Drive by its id or link")
        parser.add_argument("--name", default="", help="name of the added source; its own by default")
        parser.add_argument(
            "--confirm-removals",
            action="store_true",
            help="believe listings even when more than a tenth of a source's cards are missing from them",
        )
        parser.add_argument(
            "--changes-only",
            action="store_true",
            help="ask sources that can tell only for what changed since their last sync; removals wait for a whole one",
        )
        parser.add_argument("--dry-run", action="store_true", help="say what a sync would do, and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sync and say what was done."""
        dry_run: bool = options["dry_run"]
        sources = self._sources(options)
        lines: list[ProgressLine] = []

        def progress_of(source: Source) -> Progress:
            lines.append(ProgressLine(self.stderr, source.key))
            return lines[-1]

        how = SyncOptions(
            confirm_removals=options["confirm_removals"], changes_only=options["changes_only"], dry_run=dry_run
        )
        outcomes = []
        for outcome in sync_each(sources, how, progress_of=progress_of):
            for line in lines:
                line.close()
            outcomes.append(outcome)
        if not dry_run and CardWork.objects.filter(due_at__isnull=False).exists():
            request_dispatch("sync")
        self._print(outcomes)
        if dry_run:
            self.stdout.write("dry run: nothing was written")
        if failed := [outcome for outcome in outcomes if isinstance(outcome, NotSynced)]:
            raise CommandError(f"{len(failed)} of {len(outcomes)} sources could not be synced.")

    def _sources(self, options: Mapping[str, Any]) -> list[Source]:
        keys: list[str] = options["source"]
        option = next((name for name in ADDRESSES if options[name] is not None), None)
        if options["name"] and option is None:
            raise CommandError("--name goes with --add-folder, --add-manifest or --add-drive.")
        try:
            if option is None:
                return choose_sources(keys)
            address = ADDRESSES[option](options[option])
            added = add_source(address, name=options["name"], dry_run=options["dry_run"])
            if added._state.adding:
                return [*(choose_sources(keys) if keys else []), added]
            return choose_sources([*keys, added.key] if keys else [])
        except SourceError as error:
            raise CommandError(str(error)) from error

    def _print(self, outcomes: Sequence[Synced | NotSynced]) -> None:
        synced = [outcome for outcome in outcomes if isinstance(outcome, Synced)]
        for line in _table(synced):
            self.stdout.write(line)
        for outcome in outcomes:
            match outcome:
                case Synced(source=source, report=report):
                    self._print_problems(source, report)
                case NotSynced(source=source, reason=reason):
                    self.stderr.write(f"{source.key}: {reason}")

    def _print_problems(self, source: Source, report: SyncReport) -> None:
        for note in report.notes:
            self.stderr.write(f"{source.key}: {note}")
        for problem in report.named[:_PROBLEMS_SHOWN]:
            self.stderr.write(f"{source.key}: {problem}")
        if (unnamed := report.problems - _PROBLEMS_SHOWN) > 0:
            self.stderr.write(f"{source.key}: … and {unnamed:,} more problems")
        if report.held:
            self.stderr.write(
                f"{source.key}: {report.held:,} cards are missing from the listing, more than a tenth, and were kept:"
                f" if they are really gone, run update_database --source {source.key} --confirm-removals"
            )


def _table(synced: Iterable[Synced]) -> list[str]:
    """Return the counts of each source as aligned lines under a header."""
    rows = [(outcome.source.key, dict(outcome.report.counts())) for outcome in synced]
    if not rows:
        return []
    names = list(rows[0][1])
    cells = [[key, *(f"{count:,}" for count in counts.values())] for key, counts in rows]
    return format_table(["source", *names], cells, right=names)
