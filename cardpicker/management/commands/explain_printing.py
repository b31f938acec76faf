"""Say why a card has the answer that it has."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.operations.explanation import explanation_lines
from cardpicker.operations.find_card import CardNotFoundError, find_card
from cardpicker.stage_d.explain import explain


class Command(BaseCommand):
    """Reads only."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Show every reading, candidate, verdict and vote behind a card's answer, and the rule that led to it."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take the card."""
        parser.add_argument("card", metavar="CARD", help="its key, its identifier or file name, or its name if unique")
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Explain."""
        try:
            explained = explain(find_card(options["card"]).pk)
        except CardNotFoundError as error:
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(explained.as_json(), indent=2, ensure_ascii=False, default=str))
            return
        for line in explanation_lines(explained):
            self.stdout.write(line)
