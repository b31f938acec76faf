"""Saving a card finds its printing: a real queue, a real pool, real extraction, real PostgreSQL."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.core.management import call_command
from django.db import transaction
from django_q.models import Failure

from cardpicker.catalogue.name_key import name_key
from cardpicker.models import Card, CardPrintingTag, CardWork, ImageEvidence, PilotRunLedger, RunStatus, Source
from cardpicker.stage_e.concurrency import try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import slot_settings
from cardpicker.tests.cluster import eventually, manage, members, running_cluster
from cardpicker.tests.stage_e_support import make_source, options

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLE = Path(__file__).resolve().parents[2] / "sample_catalogue"


@pytest.fixture
def source(tmp_path: Path, settings: Any) -> Source:
    """A source beside the sample catalog's printings, with streaming on in this process too."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, streaming_enabled=True)
    call_command("import_canonical_card_data", "--from", str(SAMPLE / "printings.jsonl"), verbosity=0)
    return make_source(tmp_path / "cards")


def upload(source: Source, name: str, file: str, copies: int = 1) -> list[Card]:
    """Put a sample image into the source, save its card, and return it; copies differ by a trailing byte."""
    cards = []
    for number in range(copies):
        identifier = f"{number}-{file}"
        path = Path(source.location) / identifier
        shutil.copyfile(SAMPLE / "images" / file, path)
        with path.open("ab") as image:
            image.write(bytes([number]) * number)
        cards.append(
            Card(source=source, identifier=identifier, name=name, name_key=name_key(name), image_version=str(number))
        )
    with transaction.atomic():
        for card in cards:
            card.save()
    return cards


def printings(cards: list[Card]) -> set[tuple[str, str]]:
    """Return what the machines voted for, by set and number."""
    votes = CardPrintingTag.objects.filter(card__in=cards, printing__isnull=False)
    return set(votes.values_list("printing__expansion__code", "printing__collector_number"))


def test_a_saved_card_finds_its_printing(source: Source, tmp_path: Path) -> None:
    """The whole of it: save, commit, task, slot, pool, OCR, vote."""
    with running_cluster(tmp_path / "log"):
        cards = upload(source, "Opt", "opt-xln.png")
        eventually(lambda: CardPrintingTag.objects.filter(card__in=cards).exists(), "a vote")
        eventually(lambda: not PilotRunLedger.objects.filter(status=RunStatus.RUNNING).exists(), "the run to end")

    assert printings(cards) == {("xln", "65")}
    assert CardWork.objects.get(card=cards[0]).state == "done"
    assert PilotRunLedger.objects.get(stage_c_stored=1).status == RunStatus.COMPLETED


def test_daemonic_workers_are_refused_at_start(source: Source) -> None:
    """With django-q2's default the cluster does not even start, and says why."""
    refused = manage("qcluster", DJANGO_SETTINGS_MODULE="cardpicker.tests.daemonic_settings")

    assert refused.returncode == 1
    assert "cardpicker.E001" in refused.stderr and "Traceback" not in refused.stderr


def test_daemonic_workers_identify_nothing(source: Source, tmp_path: Path) -> None:
    """What the check guards against is real: with it silenced, the task fails and the card stays due."""
    extra = {"DJANGO_SETTINGS_MODULE": "cardpicker.tests.daemonic_settings", "SILENCE_CHECKS": "1"}
    with running_cluster(tmp_path / "log", **extra):
        cards = upload(source, "Opt", "opt-xln.png")
        failure = eventually(Failure.objects.first, "the task to fail")
        # While the cluster lives: its end may interrupt the next try.
        eventually(lambda: CardWork.objects.get(card=cards[0]).state == "due", "the card to be due again")

    assert "daemonic processes are not allowed to have children" in str(failure.result)
    assert not printings(cards)


def test_a_killed_worker_holds_nothing_and_loses_nothing(source: Source, tmp_path: Path) -> None:
    """SIGKILL in mid-batch: its slot is free and its processes are gone within seconds; the next dispatch does the rest."""
    with running_cluster(tmp_path / "log", STAGE_E_MAX_CONCURRENT_DISPATCHES="1") as cluster:
        cards = upload(source, "Opt", "opt-xln.png", copies=25)
        run = eventually(lambda: PilotRunLedger.objects.filter(status=RunStatus.RUNNING).first(), "a run")
        eventually(lambda: ImageEvidence.objects.filter(card__in=cards).count() >= 3, "evidence")
        doomed = psutil.Process(run.pid)
        family = [doomed, *doomed.children(recursive=True)]
        os.kill(run.pid, signal.SIGKILL)
        eventually(_slot_is_free, "the slot to be free", within_s=5)
        eventually(lambda: not [p for p in family if _lives(p)], "its processes to end", within_s=5)
        assert members(cluster.pid), "the cluster itself lives on"

    assert ImageEvidence.objects.filter(card__in=cards).count() < 25
    swept = manage("stream_backstop_sweep")

    assert swept.returncode == 0, swept.stdout + swept.stderr
    assert PilotRunLedger.objects.get(pk=run.pk).status == RunStatus.INTERRUPTED
    assert CardPrintingTag.objects.filter(card__in=cards, printing__isnull=False).count() == 25
    assert set(CardWork.objects.values_list("due_at", "lease_owner")) == {(None, None)}


def _slot_is_free() -> bool:
    with try_acquire_dispatch_slot(slot_settings(options(max_concurrent_dispatches=1).settings)) as slot:
        return slot is not None


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
