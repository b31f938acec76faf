"""Eight processes on the same cards at once, in opposite orders: no error, no deadlock, no vote twice, one truth."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Count

from cardpicker.models import Card, CardPrintingTag
from cardpicker.stage_d.consensus import recompute_consensus
from cardpicker.tests.cluster import environment
from cardpicker.tests.stage_d_cases import make_printing, make_user, read_card

pytestmark = pytest.mark.django_db(transaction=True)

RIVALS = 8
SECONDS = 8


def deadlocks() -> int:
    """Return how many deadlocks the server has broken in this database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_force_next_flush()")
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def test_eight_processes_vote_on_overlapping_cards() -> None:
    """Calculators, people, retractions and recounts, on cards a third of which are twins of others."""
    make_printing("Opt", "xln", "65")
    make_printing("Opt", "dom", "60")
    line = {"number": "65", "set_code": "xln"}
    for number in range(60):
        read_card("Opt", line=line, sha256_checksum=f"{number % 20:064d}" if number % 3 == 0 else None)
    for seed in range(RIVALS):
        make_user(f"rival-{seed}")
    before = deadlocks()

    rivals = [
        subprocess.Popen(
            [sys.executable, "-m", "cardpicker.tests.rival_voters", str(seed), str(SECONDS)],
            cwd=settings.BASE_DIR,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(RIVALS)
    ]
    ended = [(rival.communicate(timeout=SECONDS + 90), rival.returncode) for rival in rivals]

    assert [code for _, code in ended] == [0] * RIVALS, [errors for (_, errors), _ in ended if errors]
    done: Counter[str] = sum((Counter(json.loads(out)) for (out, _), _ in ended), Counter())
    assert done["acts"] > RIVALS and done["already_voted"] > 0 and done["votes_written"] > 0
    assert deadlocks() == before
    twice = CardPrintingTag.objects.values("card", "anonymous_id").annotate(votes=Count("pk")).filter(votes__gt=1)
    assert not twice.exists()
    assert recompute_consensus(list(Card.objects.values_list("pk", flat=True))) == {}
