"""Sources into cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.progress import ProgressLine
from cardpicker.models import CardWork, Source
from cardpicker.operations.text_table import format_table
from cardpicker.sources.errors import SourceError
from cardpicker.sources.kinds import Progress
from cardpicker.sources.report import SyncReport
from cardpicker.sources.update import NotSynced, Synced, add_folder, choose_sources, sync_sources
from cardpicker.stage_e.requests import request_dispatch

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
        parser.add_argument("--add-folder", metavar="PATH", help="add a folder of images as a source first")
        parser.add_argument("--name", default="", help="name of the added folder; its own by default")
        parser.add_argument(
            "--confirm-removals",
            action="store_true",
            help="believe listings even when more than a tenth of a source's cards are missing from them",
        )

    def handle(
        self, *args: Any, source: list[str], add_folder: str | None, name: str, confirm_removals: bool, **options: Any
    ) -> None:
        """Sync and say what was done."""
        sources = self._sources(source, add_folder, name)
        lines: list[ProgressLine] = []

        def progress_of(source: Source) -> Progress:
            lines.append(ProgressLine(self.stderr, source.key))
            return lines[-1]

        outcomes = []
        for outcome in sync_sources(sources, confirm_removals=confirm_removals, progress_of=progress_of):
            lines[-1].close()
            outcomes.append(outcome)
        if CardWork.objects.filter(due_at__isnull=False).exists():
            request_dispatch("sync")
        self._print(outcomes)
        if failed := [outcome for outcome in outcomes if isinstance(outcome, NotSynced)]:
            raise CommandError(f"{len(failed)} of {len(outcomes)} sources could not be synced.")

    def _sources(self, keys: list[str], folder: str | None, name: str) -> list[Source]:
        if name and folder is None:
            raise CommandError("--name goes with --add-folder.")
        try:
            if folder is None:
                return choose_sources(keys)
            added = add_folder(folder, name=name)
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
