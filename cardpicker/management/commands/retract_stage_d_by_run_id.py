"""Take back what the calculators said in one run."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from cardpicker.management.bulk import BulkCommand
from cardpicker.operations.bulk.judging import RetractRun


class Command(BulkCommand):
    """The votes stay in the trail, with this command's run beside their own."""

    help = "Remove the machine votes and questions of one run, and bring its cards in line. A dry run unless --write."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the run."""
        super().add_arguments(parser)
        parser.add_argument("run_id", metavar="RUN_ID", help="as the ledger and the votes have it")
        parser.add_argument("--rejudge", action="store_true", help="make the cards due for judgement at once")

    def handle(self, *args: Any, **options: Any) -> None:
        """Take back."""
        self.run(RetractRun(run_id=options["run_id"], rejudge=options["rejudge"]), options)
