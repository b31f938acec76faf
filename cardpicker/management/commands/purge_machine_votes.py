"""Remove machine votes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from cardpicker.management.bulk import BulkCommand, add_scope_arguments, scope_of
from cardpicker.operations.bulk.judging import PurgeMachineVotes


class Command(BulkCommand):
    """People's votes stay; what is removed stays in the trail."""

    help = "Remove the votes of one calculator, or of all, and bring the cards in line. As careful as a bulk judgement."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take scope, voter and override."""
        super().add_arguments(parser)
        add_scope_arguments(parser)
        parser.add_argument("--voter", default="", metavar="CALCULATOR", help="only this one's votes")
        parser.add_argument("--override", default="", metavar="NOTE", help="write without a dry run, and say why")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove."""
        job = PurgeMachineVotes(scope=scope_of(options), voter=options["voter"])
        self.run(job, options, override_note=options["override"])
