"""Stage C, and with it Stage D, of a named cohort."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from cardpicker.management.commands import stream_full_catalog


class Command(stream_full_catalog.Command):
    """A pass whose name is that of the cohort; exit codes are a pass's."""

    help = "Read the images of a named cohort: all cards, those of a source, or a sample. The same name resumes."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the cohort's name beside what a pass takes."""
        super().add_arguments(parser)
        parser.add_argument("cohort", metavar="COHORT", help="its name; the sample is drawn by it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Walk over the cohort."""
        super().handle(*args, **{**options, "name": options["cohort"]})
