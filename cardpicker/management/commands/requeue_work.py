"""Ask for cards that failed to be tried again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.models import Source
from cardpicker.operations.requeue import ask_again, failed_work
from cardpicker.stage_e.requests import request_dispatch


class Command(BaseCommand):
    """What the admin's "Ask again" does, for every card of a reason; asking twice does nothing the second time."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Make failed cards due again, those set aside included, with a fresh count of attempts."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take which cards."""
        parser.add_argument(
            "--reason", default="", metavar="OUTCOME", help="last outcome, such as 'crashed' or 'unusable: truncated'"
        )
        parser.add_argument("--source", metavar="KEY", help="only cards of this source")
        parser.add_argument("--dry-run", action="store_true", help="say how many, change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask, and say what came of it."""
        source_key: str | None = options["source"]
        if source_key is not None and not Source.objects.filter(key=source_key).exists():
            raise CommandError(f"No source has the key {source_key!r}.")
        result = ask_again(failed_work(reason=options["reason"], source_key=source_key), is_dry_run=options["dry_run"])
        for outcome, count in sorted(result.by_outcome.items()):
            self.stdout.write(f"{count:>10,}  {outcome}")
        verb = "would be made due" if options["dry_run"] else "made due"
        self.stdout.write(f"{result.asked:,} cards {verb}, {result.left_alone:,} left alone")
        if result.asked and not options["dry_run"]:
            request_dispatch("asked-for")
