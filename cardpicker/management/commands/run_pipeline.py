"""Import, sync, pass, reports and verification, in one command."""

from __future__ import annotations

import sys
import time
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.operations.durations import in_words


class Command(BaseCommand):
    """Runs the commands of a whole update in their order; the first that fails ends it, with its exit code."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Import printings, sync sources, walk over the catalog, report, and verify against a truth file."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what each step needs; a step that is given nothing is left out, or does its default."""
        parser.add_argument(
            "--from", dest="location", metavar="PATH|URL", help="Scryfall's bulk file; without it: no import"
        )
        parser.add_argument("--add-folder", metavar="PATH", help="a folder of images to add as a source")
        parser.add_argument("--source", metavar="KEY", help="sync and walk over this source only")
        parser.add_argument("--name", default="", help="of the pass; the same name resumes it")
        parser.add_argument("--reextract", action="store_true", help="read images again whose evidence is current")
        parser.add_argument("--truth", metavar="CSV", help="truth file to verify against; without it: no verification")
        parser.add_argument("--min-precision", metavar="0..1", help="verification fails below this (exit code 7)")
        parser.add_argument("--min-recall", metavar="0..1", help="verification fails below this (exit code 7)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the steps."""
        started = time.monotonic()
        for command, arguments in _steps(options):
            self.stdout.write(f"── {command} {' '.join(arguments)}".rstrip())
            code = self._run(command, arguments)
            if code:
                self.stderr.write(f"pipeline: stopped at {command} with exit code {code}")
                sys.exit(code)
        self.stdout.write(f"pipeline: done in {in_words(time.monotonic() - started)}")

    def _run(self, command: str, arguments: list[str]) -> int:
        try:
            call_command(command, *arguments, stdout=self.stdout, stderr=self.stderr)
        except CommandError as error:
            self.stderr.write(str(error))
            return error.returncode
        except SystemExit as left:
            return left.code if isinstance(left.code, int) else 1
        return 0


def _steps(options: dict[str, Any]) -> list[tuple[str, list[str]]]:
    source = _given("--source", options["source"])
    verification = [
        *_given("--truth", options["truth"]),
        *_given("--min-precision", options["min_precision"]),
        *_given("--min-recall", options["min_recall"]),
    ]
    walk = [*_given("--name", options["name"]), *source, *(["--reextract"] if options["reextract"] else [])]
    return [
        *([("import_canonical_card_data", ["--from", options["location"]])] if options["location"] else []),
        ("update_database", [*_given("--add-folder", options["add_folder"]), *source]),
        ("stream_full_catalog", walk),
        ("stage_e_status", []),
        ("channel_report", source),
        *([("score_identification", verification)] if options["truth"] else []),
    ]


def _given(option: str, value: str | None) -> list[str]:
    return [option, value] if value else []
