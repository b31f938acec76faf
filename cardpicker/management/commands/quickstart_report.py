"""The quickstart's waiting room and table."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.operations.quickstart import Progress, measure_progress, remind_workers, report_rows, result_lines
from cardpicker.stage_e.outcomes import ExitCode

POLL_INTERVAL_S = 0.5
REMIND_INTERVAL_S = 5.0
MOST_UNSETTLED_SHOWN = 10


class Command(BaseCommand):
    """Wait for a folder's cards and print what was made of them."""

    requires_system_checks = OPERATOR_CHECKS
    help = (
        "Wait until every card of a folder is settled and print what was read and found; exit 3 or 5 if some are not."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the folder and the patience."""
        parser.add_argument("--folder", type=Path, help="the folder of the cards; default: all cards")
        parser.add_argument("--wait", type=float, default=0, metavar="SECONDS", help="how long to wait at most")

    def handle(self, *args: Any, **options: Any) -> None:
        """Wait, print the table, and name what is not settled."""
        progress = self._wait(options["folder"], options["wait"])
        self.stdout.write("")
        for line in result_lines(report_rows(options["folder"])):
            self.stdout.write(line)
        self.stdout.write("")
        if progress.is_settled:
            self.stdout.write(f"All {progress.total} cards are settled.")
            return
        self._complain(progress)
        raise SystemExit(ExitCode.ENVELOPE if progress.halts else ExitCode.LIMIT_REACHED)

    def _wait(self, folder: Path | None, patience_s: float) -> Progress:
        """Wait until all is settled, dispatch is halted or the patience is over, with a line whenever a card settles."""
        began = time.monotonic()
        shown, next_reminder_s = -1, 0.0
        while True:
            progress = measure_progress(folder)
            passed_s = time.monotonic() - began
            if progress.settled != shown:
                shown = progress.settled
                self.stdout.write(f"  {progress.settled} of {progress.total} cards settled after {passed_s:.0f} s")
                self.stdout.flush()
            if progress.is_settled or progress.halts or passed_s >= patience_s:
                return progress
            if passed_s >= next_reminder_s:
                remind_workers()
                next_reminder_s = passed_s + REMIND_INTERVAL_S
            time.sleep(POLL_INTERVAL_S)

    def _complain(self, progress: Progress) -> None:
        if progress.total == 0:
            self.stdout.write("There are no cards: add some with manage.py update_database --add-folder PATH.")
        else:
            self.stdout.write(f"{len(progress.unsettled)} of {progress.total} cards are not settled:")
        for line in progress.unsettled[:MOST_UNSETTLED_SHOWN]:
            self.stdout.write(f"  {line}")
        if len(progress.unsettled) > MOST_UNSETTLED_SHOWN:
            self.stdout.write(f"  and {len(progress.unsettled) - MOST_UNSETTLED_SHOWN} more")
        for line in progress.halts:
            self.stdout.write(line)
