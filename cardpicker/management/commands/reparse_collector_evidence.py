"""Parse stored text anew."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from cardpicker.management.bulk import BulkCommand, add_scope_arguments, scope_of
from cardpicker.operations.bulk.reparsing import ReparseEvidence


class Command(BulkCommand):
    """For when the parsers have changed and the images have not."""

    help = (
        "Bring stored readings in line with today's parsers, without fetching or reading any image. A dry run unless"
        " --write; cards whose readings change are due for judgement."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the scope."""
        super().add_arguments(parser)
        add_scope_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Parse."""
        self.run(ReparseEvidence(scope=scope_of(options)), options)
