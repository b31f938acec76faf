"""Reconcile what is due from the data itself, then drain."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.signals import leave_on_sigterm
from cardpicker.stage_e.concurrency import SlotConnectionError, TransactionPoolerError
from cardpicker.stage_e.dispatch import default_options
from cardpicker.stage_e.outcomes import DispatchOutcome, ExitCode, exit_code_for
from cardpicker.stage_e.sweep import ALREADY_RUNNING, Reconciled, sweep


class Command(BaseCommand):
    """The sweep that cron runs."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Close dead runs, end old leases, find what is due from the data, and dispatch until nothing is."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the bound of one run."""
        parser.add_argument(
            "--max-batches", type=int, metavar="N", help="stop after N batches (exit code 5 if more is due)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep, and exit with why it stopped."""
        leave_on_sigterm()
        try:
            report = sweep(
                default_options(),
                max_batches=options["max_batches"],
                on_reconciled=self._reconciled,
                on_batch=self._batch,
            )
        except (SlotConnectionError, TransactionPoolerError) as error:
            raise CommandError(str(error)) from error
        except (OperationalError, InterfaceError) as error:
            raise CommandError(
                f"the database is away or cannot do its work; the next sweep takes up from here: {error}"
            ) from error
        if report is None:
            self.stdout.write(f"sweep: {ALREADY_RUNNING}")
            return
        code = ExitCode.LIMIT_REACHED if report.limit_reached else exit_code_for(report.status)
        why = "limit reached" if report.limit_reached else report.status
        detail = f" ({report.detail})" if report.detail else ""
        self.stdout.write(f"sweep: {why}{detail}; {report.batches} batches, {report.cards} cards")
        if code:
            sys.exit(code)

    def _reconciled(self, done: Reconciled) -> None:
        self.stdout.write(
            f"reconciled: {done.runs_closed} dead runs closed, {done.leases_ended} leases ended,"
            f" {done.requests_dropped} stranded requests dropped, {done.made_due} cards made due, {done.window_trimmed} old fetch records removed"
        )

    def _batch(self, outcome: DispatchOutcome) -> None:
        counts = outcome.counts
        self.stdout.write(
            f"batch: {outcome.batch_size} cards in {outcome.elapsed_s:.1f} s,"
            f" {counts.get('stage_c_stored', 0)} read, {counts.get('stage_c_transferred', 0)} copied,"
            f" {counts.get('stage_c_unusable', 0)} unusable, {counts.get('stage_d_votes', 0)} votes,"
            f" {counts.get('stage_d_review', 0)} to review"
        )
