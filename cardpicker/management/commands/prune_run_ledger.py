"""Remove old runs from the ledger."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.stage_e.ledger import prune


class Command(BaseCommand):
    """Retention of the ledger; trips are kept for ever."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Remove runs that ended long ago, a bounded number at a time."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the age and the size of a step."""
        parser.add_argument("--older-than", type=int, required=True, metavar="DAYS", help="age of the runs that go")
        parser.add_argument("--batch-size", type=int, default=5_000, help="rows of one transaction (default 5,000)")
        parser.add_argument("--dry-run", action="store_true", help="count, remove nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove, and say how many."""
        if options["older_than"] < 1 or options["batch_size"] < 1:
            raise CommandError("--older-than and --batch-size take whole numbers from 1.")
        count = prune(options["older_than"], batch_size=options["batch_size"], dry_run=options["dry_run"])
        self.stdout.write(f"{count:,} runs {'would be ' if options['dry_run'] else ''}removed")
