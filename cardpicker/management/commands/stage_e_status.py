"""Show how the streaming dispatch stands."""

from __future__ import annotations

import json
import sys
import time
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.operations.durations import in_words
from cardpicker.operations.status_report import status_lines
from cardpicker.stage_e.dispatch import slot_settings
from cardpicker.stage_e.outcomes import ExitCode
from cardpicker.stage_e.status import Status, read_status
from cardpicker.stage_e.vitals import sample_vitals

CLEAR = "\x1b[2J\x1b[H"


class Command(BaseCommand):
    """Envelope, slots, work and throughput."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Show envelope, slots and holders, work by state, throughput and the last runs. Exit code 3 when halted."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the form of the answer."""
        parser.add_argument("--json", action="store_true", help="one JSON object")
        parser.add_argument("--watch", type=float, nargs="?", const=2.0, metavar="SECONDS", help="repeat until Ctrl-C")
        parser.add_argument(
            "--check",
            type=float,
            metavar="MINUTES",
            help="for supervisors: exit code 7 when cards are due, nothing is halted, and nothing progressed for so long",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Print once, or again and again."""
        while True:
            status = self._read()
            text = json.dumps(status.as_json(), indent=2) if options["json"] else "\n".join(status_lines(status))
            self.stdout.write((CLEAR if options["watch"] and not options["json"] else "") + text)
            if not options["watch"]:
                break
            try:
                time.sleep(max(0.2, options["watch"]))
            except KeyboardInterrupt:
                return
        self._leave(status, options["check"])

    def _read(self) -> Status:
        slots = slot_settings(settings.STAGE_E)
        return read_status(settings.STAGE_E, slots.application_name, slots.namespace, sample_vitals())

    def _leave(self, status: Status, minutes: float | None) -> None:
        if status.halted:
            sys.exit(ExitCode.ENVELOPE)
        stalled = status.stalled_for(timezone.now())
        if minutes is not None and stalled is not None and stalled >= timedelta(minutes=minutes):
            self.stderr.write(f"stalled: cards are due, and nothing has progressed for {in_words(stalled)}")
            sys.exit(ExitCode.VERIFICATION_FAILED)
