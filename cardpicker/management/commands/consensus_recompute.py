"""Consensus over many cards."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from cardpicker.management.bulk import BulkCommand, add_scope_arguments, scope_of
from cardpicker.operations.bulk.judging import RecomputeConsensus


class Command(BulkCommand):
    """For when a rule of consensus has changed, or rows were changed by hand."""

    help = "Bring cards in line with their votes and those of their byte-identical twins. A dry run unless --write."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the scope."""
        super().add_arguments(parser)
        add_scope_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Recompute."""
        self.run(RecomputeConsensus(scope=scope_of(options)), options)
