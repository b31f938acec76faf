"""Score machine votes against a truth file."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.models import Source
from cardpicker.operations.abstentions import read_abstentions
from cardpicker.operations.score_report import as_json, as_text
from cardpicker.operations.scoring import ScoringError, read_truth, score_truth
from cardpicker.operations.tolerance import Tolerance, read_tolerance
from cardpicker.stage_e.outcomes import ExitCode

SHARES = {
    "min-precision": "precision",
    "min-recall": "recall",
    "min-survivors": "the share of ambiguous cards whose true printing is still possible",
}
COUNTS = {
    "max-wrong": "wrong votes",
    "max-false-positives": "votes where none can be right",
    "max-unscored": "files without a card",
}


class Command(BaseCommand):
    requires_system_checks = OPERATOR_CHECKS
    help = "Compare the best machine vote of each card in a truth file with what the file expects."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--truth",
            required=True,
            type=Path,
            metavar="CSV",
            help="columns file, expect, expect_set, expect_cn; '# max_wrong=0' lines above them say what fails",
        )
        parser.add_argument("--source", metavar="KEY", help="score only cards of this source")
        for name, meaning in SHARES.items():
            parser.add_argument(f"--{name}", type=_share, metavar="0..1", help=f"exit 7 when {meaning} is below this")
        for name, meaning in COUNTS.items():
            parser.add_argument(f"--{name}", type=_count, metavar="N", help=f"exit 7 with more {meaning} than this")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        source_key: str | None = options["source"]
        if source_key is not None and not Source.objects.filter(key=source_key).exists():
            raise CommandError(f"No source has the key {source_key!r}.")
        try:
            score = score_truth(read_truth(options["truth"]), source_key=source_key)
            asked = Tolerance(
                **{name.replace("-", "_"): options[name.replace("-", "_")] for name in (*SHARES, *COUNTS)}
            )
            tolerance = read_tolerance(options["truth"]).overridden_by(asked)
        except ScoringError as error:
            raise CommandError(str(error)) from error
        abstentions = read_abstentions(score)
        report = json.dumps(as_json(score, abstentions), indent=2) if options["json"] else as_text(score, abstentions)
        self.stdout.write(report)
        if misses := tolerance.misses(score, abstentions):
            raise CommandError(f"Verification failed: {'; '.join(misses)}.", returncode=ExitCode.VERIFICATION_FAILED)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share from 0 to 1")
    return share
