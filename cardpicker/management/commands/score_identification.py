"""Score machine votes against a truth file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.models import Source
from cardpicker.operations.score_report import as_json, as_text
from cardpicker.operations.scoring import ScoringError, read_truth, score_truth

EXIT_VERIFICATION_FAILED = 7


class Command(BaseCommand):
    requires_system_checks = OPERATOR_CHECKS
    help = "Compare the best machine vote of each card in a truth file with what the file expects."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--truth", required=True, type=Path, metavar="CSV", help="columns file, expect, expect_set, expect_cn"
        )
        parser.add_argument("--source", metavar="KEY", help="score only cards of this source")
        parser.add_argument("--min-precision", type=_share, metavar="0..1", help="exit 7 below this")
        parser.add_argument("--min-recall", type=_share, metavar="0..1", help="exit 7 below this")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        source_key: str | None = options["source"]
        if source_key is not None and not Source.objects.filter(key=source_key).exists():
            raise CommandError(f"No source has the key {source_key!r}.")
        try:
            score = score_truth(read_truth(options["truth"]), source_key=source_key)
        except ScoringError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps(as_json(score), indent=2) if options["json"] else as_text(score))
        minimums = {"min_precision": options["min_precision"], "min_recall": options["min_recall"]}
        if not score.reaches(**minimums):
            wanted = ", ".join(
                f"--{name.replace('_', '-')} {value}" for name, value in minimums.items() if value is not None
            )
            raise CommandError(f"Verification failed: {wanted} is not reached.", returncode=EXIT_VERIFICATION_FAILED)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1")
    return share
