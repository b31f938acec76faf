"""Evidence, votes and a crawl written at once, over the same cards in opposite orders."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connections

from cardpicker.models import Card, CardPrintingTag, ImageEvidence, Source
from cardpicker.sources.sync import sync_source
from cardpicker.stage_c.outcomes import CardGone, Stored
from cardpicker.stage_c.persist import persist_evidence
from cardpicker.stage_d.run import run_stage_d
from cardpicker.tests.stage_c_jobs import evidence
from cardpicker.tests.stage_d_cases import make_printing

CARDS = 40
ROUNDS = 12
LINE: dict[str, Any] = {"collector_line": {"number": "65", "set_code": "xln", "confidence": 0.95}}


def persist_and_judge(step: int, done: Counter[str]) -> None:
    """Store evidence of every card and judge all, from one end or the other."""
    for _ in range(ROUNDS):
        cards = list(Card.objects.order_by("pk").values_list("pk", "image_version"))[::step]
        for pk, version in cards:
            read = replace(evidence(str(pk).encode()), readings=LINE)
            outcome = persist_evidence(
                pk, version, read, run_id="r", elapsed_ms=1, settle=lambda card_id, outcome: None
            )
            assert isinstance(outcome, Stored | CardGone)
            done[type(outcome).__name__] += 1
        run_stage_d([pk for pk, _ in cards], run_id="r")


def crawl(source: Source, done: Counter[str]) -> None:
    """Change one file after the other, and sync each time."""
    for number in itertools.islice(itertools.cycle(range(CARDS)), ROUNDS * 8):
        path = Path(source.location) / f"Opt ({number}).png"
        path.write_bytes(b"\x89PNG" + bytes([number, done.total() % 256]))
        done["changed"] += sync_source(source).changed


def run_together(*works: Callable[[], None]) -> list[BaseException]:
    """Do all works at once, each in a thread with a connection of its own; return what went wrong."""
    start, errors = threading.Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], None]) -> None:
        try:
            start.wait(30)
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    return errors


@pytest.mark.django_db(transaction=True)
def test_evidence_votes_and_a_crawl_in_opposite_orders_all_succeed(tmp_path: Path) -> None:
    """Two workers persist and judge, one from each end, while a crawl rewrites the cards: no error, nothing lost."""
    make_printing("Opt", "xln", "65")
    for number in range(CARDS):
        (tmp_path / f"Opt ({number}).png").write_bytes(b"\x89PNG" + bytes([number]))
    source = Source.objects.create(key="folder", name="Folder", kind="local_folder", location=str(tmp_path))
    sync_source(source)
    done: Counter[str] = Counter()

    errors = run_together(
        lambda: persist_and_judge(1, done), lambda: persist_and_judge(-1, done), lambda: crawl(source, done)
    )

    assert not errors
    assert done["Stored"] > CARDS and done["changed"] > 0
    assert ImageEvidence.objects.count() == CARDS == Card.objects.count()
    assert CardPrintingTag.objects.count() <= CARDS
