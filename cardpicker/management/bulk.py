"""What the bulk commands share: their options, their progress, their report and their exit codes."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.progress import ProgressLine
from cardpicker.operations.bulk.jobs import BulkError, BulkJob, Scope
from cardpicker.operations.bulk.run import BulkReport, run_bulk
from cardpicker.operations.bulk.runs import BulkOptions
from cardpicker.stage_e.outcomes import ExitCode
from cardpicker.stage_e.requests import request_dispatch


class BulkCommand(BaseCommand):
    """Exit codes: 0 done; 1 wrong use, or no dry run yet; 5 stopped by --max-chunks with cards left."""

    requires_system_checks = OPERATOR_CHECKS

    def add_arguments(self, parser: CommandParser) -> None:
        """Take what every bulk command takes."""
        parser.add_argument("--write", action="store_true", help="keep the changes; without it: a dry run")
        parser.add_argument(
            "--restart", action="store_true", help="do not take up an interrupted run of the same scope"
        )
        parser.add_argument(
            "--chunk-size", type=positive, default=500, metavar="N", help="cards of a transaction (500)"
        )
        parser.add_argument("--workers", type=positive, default=1, metavar="N", help="processes that do chunks (1)")
        parser.add_argument("--max-chunks", type=positive, metavar="N", help="stop after N chunks (exit code 5)")
        parser.add_argument(
            "--diff-report", metavar="PATH", help="write each changed vote, question and answer there as a JSON line"
        )

    def run(self, job: BulkJob, options: Mapping[str, Any], *, override_note: str = "") -> None:
        """Run the job, say what it did, and leave with the code that says how it ended."""
        wanted = BulkOptions(
            writes=options["write"],
            override_note=override_note,
            restart=options["restart"],
            chunk_size=options["chunk_size"],
            workers=options["workers"],
            max_chunks=options["max_chunks"],
            diff=bool(options["diff_report"]),
        )
        progress = ProgressLine(self.stderr, job.command)
        try:
            with _report_lines(options["diff_report"]) as write_changes:
                report = run_bulk(
                    job,
                    wanted,
                    on_progress=lambda done, total: progress("cards", done, total),
                    on_changes=write_changes,
                )
        except BulkError as error:
            raise CommandError(str(error)) from error
        finally:
            progress.close()
        if report.writes and report.counts.get("made_due"):
            request_dispatch(job.command)
        self._tell(job, report)
        if not report.finished:
            sys.exit(ExitCode.LIMIT_REACHED)

    def _tell(self, job: BulkJob, report: BulkReport) -> None:
        for name, count in sorted(report.counts.items()):
            if count:
                self.stdout.write(f"{count:>10,}  {name}")
        kind = "written" if report.writes else "dry run, nothing kept"
        ended = "" if report.finished else "; stopped, run again to go on"
        self.stdout.write(
            f"{job.command}: {report.cards:,} cards, {kind}{ended}; run={report.run_id} scope={job.words!r}"
            f" ({report.cards_per_s:,.0f} cards/s)"
        )


def add_scope_arguments(parser: CommandParser) -> None:
    """Take the cards that are meant."""
    parser.add_argument("--source", metavar="KEY", help="only cards of this source")
    parser.add_argument(
        "--card", type=positive, action="append", default=[], metavar="ID", help="only this card; repeat"
    )


def scope_of(options: Mapping[str, Any]) -> Scope:
    """Return the cards that are meant."""
    return Scope(source_key=options["source"], card_ids=tuple(sorted(set(options["card"]))))


def positive(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


@contextlib.contextmanager
def _report_lines(path: str | None) -> Iterator[Callable[[Sequence[Mapping[str, Any]]], None]]:
    """Have a place for changes: a file that is added to, so that a run in parts has one report."""
    if path is None:
        yield lambda changes: None
        return
    try:
        with Path(path).open("a", encoding="utf-8") as stream:

            def write(changes: Sequence[Mapping[str, Any]]) -> None:
                stream.writelines(f"{json.dumps(change, ensure_ascii=False)}\n" for change in changes)
                stream.flush()

            yield write
    except OSError as error:
        raise CommandError(f"{path}: cannot be written ({error.strerror}); give another --diff-report.") from error
