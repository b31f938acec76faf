"""Pause dispatch everywhere."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.account import name_or_account
from cardpicker.stage_e.envelope import NoteMissingError, pause


class Command(BaseCommand):
    """A pause is a trip, so everything that heeds trips heeds it."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Pause dispatch on every host. Acknowledging the trip (resolve_envelope_trip) resumes it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the reason and the name."""
        parser.add_argument("--note", required=True, help="why, for whoever finds dispatch paused")
        parser.add_argument("--who", default="", help="your name; default: the account that runs this")

    def handle(self, *args: Any, **options: Any) -> None:
        """Open the trip."""
        try:
            trip = pause(name_or_account(options["who"]), options["note"])
        except NoteMissingError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Paused as trip {trip.pk}: running batches finish their images in flight and stop.")
        self.stdout.write(f'Resume: python manage.py resolve_envelope_trip --acknowledge-trip {trip.pk} --note "…"')
