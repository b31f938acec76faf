"""Bulk commands as processes: the same votes as the stream's, also by several workers, also after a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from django.conf import settings
from django.db import connection

from cardpicker.models import BulkRun, CardPrintingTag, ReviewItem, SupersededVote
from cardpicker.stage_d.votes import cast_human_vote
from cardpicker.stage_e.dispatch import dispatch_micro_batch
from cardpicker.tests.cluster import PATIENCE_S, environment, manage
from cardpicker.tests.judged_cards import make_judged_cards, outcome
from cardpicker.tests.stage_d_cases import make_user
from cardpicker.tests.stage_e_support import options

pytestmark = pytest.mark.django_db(transaction=True)

BULK = ("local_calculate_verdicts", "--write", "--override", "a test")


def start_over() -> None:
    """Forget all that machines said."""
    CardPrintingTag.objects.exclude(source="USER").delete()
    ReviewItem.objects.all().delete()
    SupersededVote.objects.all().delete()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_bulk_gives_the_votes_that_the_stream_gives(workers: str) -> None:
    """For every fate of evidence, with a person's vote among them, whatever the size of batches and chunks."""
    cards = make_judged_cards(copies=3)
    cast_human_vote(cards[0], None, make_user("ann"))
    while dispatch_micro_batch(batch_size=10, options=options()).batch_size:
        pass
    streamed = outcome()
    assert len(streamed[0]) > len(cards) / 3 and streamed[1]
    start_over()

    done = manage(*BULK, "--workers", workers, "--chunk-size", "4")

    assert done.returncode == 0, done.stderr
    assert outcome() == streamed


def test_a_command_killed_amid_its_work_leaves_no_lock_and_goes_on() -> None:
    """SIGKILL with processes at work; the same command then ends it, with the votes of an undisturbed run."""
    make_judged_cards(copies=40)
    assert manage(*BULK, "--restart").returncode == 0
    undisturbed = outcome()
    start_over()
    BulkRun.objects.all().delete()

    command = [sys.executable, "manage.py", *BULK, "--chunk-size", "1", "--workers", "2"]
    with subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment(), stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + PATIENCE_S
        while not BulkRun.objects.filter(cards_done__gte=3).exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert BulkRun.objects.get().finished_at is None

    done = manage(*BULK)

    assert done.returncode == 0, done.stderr
    assert outcome() == undisturbed
    run = BulkRun.objects.get()
    assert run.finished_at is not None and run.cards_done == len(undisturbed[2])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'"
        )
        assert cursor.fetchone()[0] == 0
