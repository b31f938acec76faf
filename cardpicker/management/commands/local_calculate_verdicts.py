"""Stage D over many cards, without the stream."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from cardpicker.management.bulk import BulkCommand, add_scope_arguments, scope_of
from cardpicker.operations.bulk.judging import CalculateVerdicts


class Command(BulkCommand):
    """Judges as the stream does, by the same code."""

    help = (
        "Judge every card in scope that has evidence and no answer. A dry run unless --write is given, which takes a"
        " finished dry run of the same scope and rules in the last 48 h, or --override."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take scope and override."""
        super().add_arguments(parser)
        add_scope_arguments(parser)
        parser.add_argument("--override", default="", metavar="NOTE", help="write without a dry run, and say why")

    def handle(self, *args: Any, **options: Any) -> None:
        """Judge."""
        self.run(CalculateVerdicts(scope=scope_of(options)), options, override_note=options["override"])
