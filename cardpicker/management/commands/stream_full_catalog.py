"""Walk over the whole catalog."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.signals import leave_on_sigterm
from cardpicker.operations.durations import in_words
from cardpicker.stage_e.concurrency import TransactionPoolerError
from cardpicker.stage_e.dispatch import default_options
from cardpicker.stage_e.passes import (
    PassError,
    PassLimits,
    PassProgress,
    PassReport,
    PassScope,
    open_pass,
    run_pass,
    sketch_pass,
)
from cardpicker.stage_e.rehearsal import rehearse_pass


class Command(BaseCommand):
    """A pass, resumable by its name."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Bring every card of the catalog, or of one source, up to date. The same --name resumes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take scope and limits."""
        parser.add_argument("--name", default="", help="of the pass; default: today's date")
        parser.add_argument("--source", metavar="KEY", help="only cards of this source")
        parser.add_argument("--sample", type=_positive, metavar="N", help="only N cards, drawn by the pass's name")
        parser.add_argument("--reextract", action="store_true", help="read images again whose evidence is current")
        parser.add_argument(
            "--dry-run", action="store_true", help="read and judge everything from the start, and store nothing of it"
        )
        parser.add_argument("--max-batches", type=_positive, metavar="N", help="stop after N batches (exit code 5)")
        parser.add_argument(
            "--throttle-budget",
            type=float,
            default=300.0,
            metavar="SECONDS",
            help="wait so long, all in all, for a free slot (exit code 4; default 300)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Walk, and exit with why it stopped."""
        leave_on_sigterm()
        scope = PassScope(
            name=options["name"] or f"{timezone.localdate():%Y-%m-%d}",
            source_key=options["source"],
            reextract=options["reextract"],
            sample=options["sample"],
        )
        limits = PassLimits(max_batches=options["max_batches"], throttle_budget_s=options["throttle_budget"])
        try:
            if options["dry_run"]:
                report = rehearse_pass(sketch_pass(scope), default_options(), limits, self._tell)
            else:
                report = run_pass(open_pass(scope), default_options(), limits, self._tell)
        except (PassError, TransactionPoolerError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(verdict(report))
        if report.exit_code:
            sys.exit(report.exit_code)

    def _tell(self, progress: PassProgress) -> None:
        left = progress.time_left_s
        eta = "" if left is None else f", {in_words(left)} to go"
        self.stdout.write(
            f"{progress.done:,} done, {progress.left:,} left, {progress.cards_per_s:.1f} cards/s{eta};"
            f" {progress.outcome.counts.get('stage_d_votes', 0)} votes,"
            f" {progress.outcome.counts.get('stage_c_unusable', 0)} unusable"
        )


def verdict(report: PassReport) -> str:
    """Return the last line, for whoever reads it by a program."""
    detail = f" detail={report.detail!r}" if report.detail else ""
    return f"pass: reason={report.reason} done={report.done} left={report.left} resume={report.name!r}{detail}"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
