"""Hashes of the art of printings, which narrow what a card may show."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Final, assert_never

from django.conf import settings as django_settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from cardpicker.catalogue.canonical_art import ArtScope, count_art, due_art, forget_other_kinds, only_run
from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.management.bulk import positive
from cardpicker.management.progress import ProgressLine
from cardpicker.management.signals import leave_on_sigterm
from cardpicker.operations.durations import in_words
from cardpicker.stage_c.canonical_art import ArtHooks, ArtReport, Ended, hash_art
from cardpicker.stage_c.fetch.destinations import rate_per_s
from cardpicker.stage_c.fetch.limiter import SCRYFALL_IMAGE
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_e.catalogue_changes import mark_names_due
from cardpicker.stage_e.envelope import open_trip
from cardpicker.stage_e.outcomes import ExitCode
from cardpicker.stage_e.requests import request_dispatch

#: Seconds between two looks at the envelope.
LOOK_EVERY_S: Final = 2.0


class Command(BaseCommand):
    """Exit codes: 0 done; 1 another run, or no answer; 3 open trip or lockout; 4 throttled; 5 stopped by --limit."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Fetch the art of printings from Scryfall and store its hash, once an illustration. Run again to go on."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take scope and limits."""
        parser.add_argument("--set", action="append", default=[], metavar="CODE", help="only this set; repeat")
        parser.add_argument("--sample", type=positive, metavar="N", help="only N illustrations, always the same")
        parser.add_argument("--limit", type=positive, metavar="N", help="stop after N illustrations (exit code 5)")
        parser.add_argument("--retry", action="store_true", help="also those that failed for good or too often")
        parser.add_argument("--dry-run", action="store_true", help="only say what there is to do; fetch nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Hash, and exit with why it stopped."""
        leave_on_sigterm()
        settings = django_settings.STAGE_C
        scope = ArtScope(
            sets=tuple(sorted({code.lower() for code in options["set"]})),
            sample=options["sample"],
            retry=options["retry"],
        )
        if options["dry_run"]:
            self._foretell(scope, options["limit"], settings)
            return
        with only_run() as is_only:
            if not is_only:
                raise CommandError("Another run hashes art already: wait for it to end.")
            self._run(scope, options["limit"], settings)

    def _foretell(self, scope: ArtScope, limit: int | None, settings: StageCSettings) -> None:
        now = timezone.now()
        due = len(due_art(scope, now))
        self._tell_states(scope)
        wanted = min(due, limit or due)
        wait = in_words(wanted / rate_per_s(SCRYFALL_IMAGE, settings))
        self.stdout.write(f"dry run: {due:,} illustrations due, {wanted:,} would be fetched in {wait} or more")

    def _run(self, scope: ArtScope, limit: int | None, settings: StageCSettings) -> None:
        started = time.monotonic()
        if forgotten := forget_other_kinds():
            self.stdout.write(f"{forgotten:,} printings had a hash of another kind, which is forgotten")
        wanted = due_art(scope, timezone.now())
        total = min(len(wanted), limit or len(wanted))
        progress = ProgressLine(self.stderr, "art")
        due: list[int] = []
        hooks = ArtHooks(
            should_stop=_envelope(),
            on_progress=lambda done: progress("illustrations", done, total),
            on_changed=lambda name_keys: due.append(mark_names_due(name_keys)),
        )
        try:
            report = hash_art(wanted, settings=settings, hooks=hooks, limit=limit)
        finally:
            progress.close()
        self._tell_states(scope)
        if marked := sum(due):
            self.stdout.write(f"{marked:,} cards are due for judgement by what changed.")
            request_dispatch("catalog-changed")
        self._leave(report, time.monotonic() - started)

    def _tell_states(self, scope: ArtScope) -> None:
        for outcome, count in sorted(count_art(scope, timezone.now()).items()):
            self.stdout.write(f"{count:>10,}  {outcome.lower() or 'not tried yet'}")

    def _leave(self, report: ArtReport, elapsed_s: float) -> None:
        tried = sum(report.counts.values())
        counts = ", ".join(f"{count:,} {outcome.lower()}" for outcome, count in sorted(report.counts.items()))
        line = f"art: {report.ended}; {tried:,} tried in {in_words(elapsed_s)}"
        line += (f": {counts}" if counts else "") + (f"; {report.throttled} throttled" if report.throttled else "")
        self.stdout.write(line + (f" ({report.detail})" if report.detail else ""))
        match report.ended:
            case Ended.DONE:
                return
            case Ended.LIMIT:
                sys.exit(ExitCode.LIMIT_REACHED)
            case Ended.STOPPED | Ended.LOCKED_OUT:
                sys.exit(ExitCode.ENVELOPE)
            case Ended.THROTTLED:
                sys.exit(ExitCode.THROTTLED_OUT)
            case Ended.UNREACHABLE:
                raise CommandError(f"The host of the pictures cannot be reached; run this again later: {report.detail}")
            case _:
                assert_never(report.ended)


def _envelope() -> Callable[[], str]:
    """Return what looks now and then whether a trip is open, an operator's pause among them, and says which."""
    looked_at, why = -LOOK_EVERY_S, ""

    def look() -> str:
        nonlocal looked_at, why
        if time.monotonic() - looked_at >= LOOK_EVERY_S:
            looked_at, trip = time.monotonic(), open_trip()
            why = "" if trip is None else f"trip {trip.pk} is open: {trip.get_bar_display()}"
        return why

    return look
