"""Scryfall's bulk file of printings into the catalog."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.catalogue.errors import CatalogueError, ServerRefusedError
from cardpicker.catalogue.scryfall import ImportReport, import_bulk
from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.progress import ProgressLine
from cardpicker.stage_c.fetch.classify import retry_after_s
from cardpicker.stage_c.fetch.waiting import BudgetSpentError, await_permit, tell_status
from cardpicker.stage_e.catalogue_changes import mark_names_due
from cardpicker.stage_e.requests import request_dispatch


class Command(BaseCommand):
    """Exit codes: 0 done, also when single records were skipped; 1 nothing was imported."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Import real printings from Scryfall's bulk file; safe to run again. Bad records are named and skipped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare ``--from``."""
        parser.add_argument(
            "--from",
            dest="location",
            required=True,
            metavar="PATH|URL",
            help="Scryfall's 'default cards' or 'all cards' bulk data: a JSON array or JSON lines, gzip or not",
        )

    def handle(self, *args: Any, location: str, **options: Any) -> None:
        """Import and say what was done."""
        started = time.monotonic()
        progress = ProgressLine(self.stderr, "printings")
        due: list[int] = []
        try:
            await_permit(location, settings.STAGE_C)
            report = import_bulk(location, progress=progress, on_touched=lambda keys: due.append(mark_names_due(keys)))
        except (CatalogueError, BudgetSpentError) as error:
            if isinstance(error, ServerRefusedError):
                tell_status(location, error.status, retry_after_s(error.retry_after))
            raise CommandError(str(error)) from error
        finally:
            progress.close()
        self._print(report, time.monotonic() - started)
        if marked := sum(due):
            self.stdout.write(f"{marked:,} cards are due for judgement by what changed.")
            request_dispatch("catalog-changed")

    def _print(self, report: ImportReport, elapsed_s: float) -> None:
        for line in (*map(str, report.bad_named), *report.repeated_named):
            self.stderr.write(line)
        if (unnamed := report.bad - len(report.bad_named)) > 0:
            self.stderr.write(f"… and {unnamed:,} more bad records")
        self.stdout.write(
            f"{report.read:,} printings read in {elapsed_s:.1f} s: {report.new:,} new, {report.changed:,} changed,"
            f" {report.unchanged:,} unchanged; {report.bad:,} bad records skipped, {report.repeated:,} repeated."
        )
