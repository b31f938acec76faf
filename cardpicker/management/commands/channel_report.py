"""Show what each extractor and calculator has to say, and why it says nothing."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.bulk import positive
from cardpicker.operations.bulk.jobs import BulkError, Scope
from cardpicker.operations.channel_lines import channel_lines
from cardpicker.operations.channels import read_channels
from cardpicker.stage_e.outcomes import ExitCode

DRAWN = 10_000


class Command(BaseCommand):
    """Exit codes: 0 done; 7 with --check, when a channel ran on no card."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Count, for each extractor and calculator: positive, negative, abstained and why, silent and why."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take scope and form."""
        parser.add_argument("--source", metavar="KEY", help="only cards of this source")
        parser.add_argument("--sample", type=positive, default=DRAWN, metavar="N", help=f"cards drawn ({DRAWN:,})")
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument("--check", action="store_true", help="exit code 7 when a channel ran on no card at all")

    def handle(self, *args: Any, **options: Any) -> None:
        """Report."""
        try:
            cards = Scope(source_key=options["source"]).cards().present()
        except BulkError as error:
            raise CommandError(str(error)) from error
        report = read_channels(cards, options["sample"])
        self.stdout.write(
            json.dumps(report.as_json(), indent=2) if options["json"] else "\n".join(channel_lines(report))
        )
        if options["check"] and report.never_ran:
            self.stderr.write(f"never ran on any card: {', '.join(report.never_ran)}")
            sys.exit(ExitCode.VERIFICATION_FAILED)
