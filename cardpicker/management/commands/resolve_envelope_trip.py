"""Acknowledge an open envelope trip."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.account import name_or_account
from cardpicker.models import EnvelopeTrip
from cardpicker.stage_e.envelope import NoteMissingError, TripNotOpenError, acknowledge_trip


class Command(BaseCommand):
    """List open trips, or close one."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Acknowledge an open envelope trip, so that dispatch may resume. Without arguments: list the open trips."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the trip, the note and the name."""
        parser.add_argument("--acknowledge-trip", type=int, metavar="TRIP_ID")
        parser.add_argument("--note", default="", help="what you found, for whoever reads the trip later")
        parser.add_argument("--who", default="", help="your name; default: the account that runs this")

    def handle(self, *args: Any, **options: Any) -> None:
        """Acknowledge, or list."""
        if options["acknowledge_trip"] is None:
            self._list()
            return
        try:
            trip = acknowledge_trip(options["acknowledge_trip"], options["note"], name_or_account(options["who"]))
        except (NoteMissingError, TripNotOpenError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Trip {trip.pk} ({trip.get_bar_display()}) is acknowledged by {trip.acknowledged_by}.")
        left = EnvelopeTrip.objects.filter(acknowledged_at__isnull=True).count()
        self.stdout.write("Dispatch may resume." if not left else f"{left} more open: dispatch stays halted.")

    def _list(self) -> None:
        trips = EnvelopeTrip.objects.filter(acknowledged_at__isnull=True)
        for trip in trips:
            where = trip.host or "every host"
            self.stdout.write(
                f"{trip.pk:>6}  {trip.opened_at:%Y-%m-%d %H:%M} UTC  {trip.bar:<18}  {where}  {trip.detail}"
            )
        if not trips:
            self.stdout.write("No trip is open.")
