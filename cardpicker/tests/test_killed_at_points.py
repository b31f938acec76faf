"""SIGKILL of a dispatch at each point of a batch: the next dispatch makes everything true, and nothing is done twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from cardpicker.models import CardPrintingTag, CardWork, ImageEvidence, PilotRunLedger, RunStatus, Source
from cardpicker.stage_e.dispatch import dispatch_micro_batch
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.stage_e.sweep import reconcile
from cardpicker.tests.cluster import environment, eventually
from cardpicker.tests.dying_worker import POINTS
from cardpicker.tests.stage_e_support import make_cards, make_printing, make_source, options

pytestmark = pytest.mark.django_db(transaction=True)

CARDS = 3
#: The coordinator ticks once a second, so that one tick comes while an image is read.
LONG_S = 1.2
ENDED_WITHIN_S = 30.0


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder whose cards have a printing."""
    make_printing("Opt", "xln", "65")
    return make_source(tmp_path / "cards")


@pytest.mark.parametrize("point", POINTS)
def test_a_batch_that_was_killed_there_is_done_once_in_the_end(source: Source, point: str) -> None:
    """Slot free, row terminal, each card read and judged once and charged for one attempt at most."""
    seconds = LONG_S if point == "in mid-computation" else 0
    make_cards(source, CARDS, set_code="xln", number="65", seconds=seconds)

    killed = subprocess.run(
        [sys.executable, "-m", "cardpicker.tests.dying_worker", point],
        cwd=settings.BASE_DIR,
        env=_with_settings(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
    reconcile(5)

    assert not PilotRunLedger.objects.filter(status=RunStatus.RUNNING).exists()
    assert not CardWork.objects.filter(lease_owner__isnull=False).exists()
    assert CardWork.objects.filter(attempts__gt=1).count() == 0
    outcome = eventually(_next_dispatch, "a free slot", within_s=5)
    assert outcome in (DispatchStatus.COMPLETED, DispatchStatus.EMPTY)
    assert set(CardWork.objects.values_list("due_at", "lease_owner", "quarantined_at")) == {(None, None, None)}
    assert ImageEvidence.objects.exclude(judged_by="").count() == CARDS
    assert CardPrintingTag.objects.filter(printing__isnull=False).count() == CARDS


def _next_dispatch() -> DispatchStatus | None:
    status = dispatch_micro_batch(options=options(max_concurrent_dispatches=1)).status
    return None if status is DispatchStatus.THROTTLED else status


def test_a_killed_clients_statement_ends_on_the_server() -> None:
    """The server looks for its client while it works, and does not finish for nobody."""
    sleeper = "import django; django.setup(); from django.db import connection; connection.cursor().execute('SELECT pg_sleep(100)')"
    client = subprocess.Popen([sys.executable, "-c", sleeper], cwd=settings.BASE_DIR, env=_with_settings())
    try:
        eventually(_is_asleep, "the statement to run", within_s=ENDED_WITHIN_S)
        client.kill()

        eventually(lambda: not _is_asleep(), "the statement to end", within_s=ENDED_WITHIN_S)
    finally:
        client.kill()
        client.wait()


def _with_settings() -> dict[str, str]:
    return {**environment(), "DJANGO_SETTINGS_MODULE": "config.settings"}


def _is_asleep() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(100)' AND state = 'active'"
        )
        return bool(cursor.fetchone()[0])
