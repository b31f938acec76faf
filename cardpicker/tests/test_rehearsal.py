"""A dry run of a pass: it says what the pass would do, and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest
from django.core import serializers
from django.db import connections, models

from cardpicker.models import (
    CardPrintingTag,
    CardWork,
    CatalogPass,
    EnvelopeBar,
    EnvelopeTrip,
    ImageEvidence,
    PilotRunLedger,
    ReviewItem,
    Source,
)
from cardpicker.stage_e import envelope
from cardpicker.stage_e.outcomes import DispatchStatus
from cardpicker.stage_e.passes import PassLimits, PassReason, PassScope, open_pass, run_pass, sketch_pass
from cardpicker.stage_e.rehearsal import rehearse_batch, rehearse_pass
from cardpicker.tests.cluster import eventually, manage
from cardpicker.tests.stage_e_support import HEALTHY, make_cards, make_printing, make_source, options

pytestmark = pytest.mark.django_db(transaction=True)

KEPT: tuple[type[models.Model], ...] = (
    CardPrintingTag,
    CardWork,
    CatalogPass,
    ImageEvidence,
    PilotRunLedger,
    ReviewItem,
    Source,
)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder whose cards have a printing."""
    make_printing("Opt", "xln", "65")
    return make_source(tmp_path / "cards")


def everything() -> str:
    """Return all rows that a pass may write."""
    return "\n".join(serializers.serialize("json", kind._default_manager.order_by("pk")) for kind in KEPT)


def rehearsed(**scope: Any) -> tuple[Any, list[Any]]:
    """Rehearse a pass; return its report and the counts of each batch."""
    told: list[Any] = []
    walk = sketch_pass(PassScope(name="x", **scope))
    return rehearse_pass(walk, options(), PassLimits(), lambda p: told.append(p.outcome.counts)), told


def test_it_stores_nothing_and_tells_what_the_pass_then_does(source: Source) -> None:
    """The numbers are the pass's own."""
    make_cards(source, 30, set_code="xln", number="65")
    before = everything()

    report, told = rehearsed()

    assert everything() == before
    assert (report.reason, report.done, report.left, report.batches) == (PassReason.COMPLETE, 30, 0, 2)
    run_pass(open_pass(PassScope(name="x")), options(), PassLimits())
    runs = PilotRunLedger.objects.order_by("pk").values_list("stage_c_stored", "stage_d_votes")
    assert [(counts["stage_c_stored"], counts["stage_d_votes"]) for counts in told] == list(runs) == [(25, 25), (5, 5)]


def test_current_evidence_is_read_again_only_when_asked(source: Source) -> None:
    """Without it, the rehearsal judges what is there."""
    make_cards(source, 3, set_code="xln", number="65")
    run_pass(open_pass(PassScope(name="real")), options(), PassLimits())
    before = everything()

    judged, read = rehearsed()[1][0], rehearsed(reextract=True)[1][0]

    assert (judged["stage_c_stored"], judged["already_voted"]) == (0, 3)
    assert (read["stage_c_stored"], read["already_voted"]) == (3, 3)
    assert everything() == before


def test_it_heeds_the_gates(source: Source) -> None:
    """A halted host reads nothing, not even for a rehearsal."""
    make_cards(source, 1)
    envelope.pause("me", "looking")

    report, told = rehearsed()

    assert (report.reason, told) == (PassReason.HALTED, [])


def test_a_breach_halts_a_rehearsal_as_it_halts_a_pass(source: Source) -> None:
    """The host's bars hold for whatever reads images on it, and so does a lock server that is away."""
    make_cards(source, 1)
    away = options(lock_dsn="host=127.0.0.1 port=1 connect_timeout=2")
    walk = sketch_pass(PassScope(name="x"))
    loaded = options(sample=lambda: dataclasses.replace(HEALTHY, load_1m=9))

    assert rehearse_pass(walk, away, PassLimits()).reason is PassReason.THROTTLED_OUT
    assert rehearse_pass(walk, loaded, PassLimits()).reason is PassReason.HALTED
    assert not ImageEvidence.objects.exists()


def test_a_pause_in_mid_batch_is_heeded_as_by_a_pass(source: Source, tmp_path: Path) -> None:
    """Nothing new is read once somebody has paused, however much of the batch is left."""
    marker = tmp_path / "begun"
    make_cards(source, 25, seconds=0.4, marker=str(marker))
    pausing = threading.Thread(target=_pause_once, args=(marker,), daemon=True)
    pausing.start()

    outcome = rehearse_batch(list(CardWork.objects.values_list("pk", flat=True)), options())
    pausing.join()

    assert outcome.status is DispatchStatus.COMPLETED_WITH_TRIP
    assert 0 < outcome.counts["stage_c_stored"] < 25
    assert not ImageEvidence.objects.exists()


def test_a_grown_process_halts_a_rehearsal_in_mid_batch(source: Source) -> None:
    """Its processes are held to the bar as those of a pass, and the pass it rehearses would end there."""
    make_cards(source, 25, seconds=0.4)
    samples = iter([HEALTHY])
    grown = dataclasses.replace(HEALTHY, largest_rss_mb=900)
    walk = sketch_pass(PassScope(name="x"))

    report = rehearse_pass(walk, options(sample=lambda: next(samples, grown)), PassLimits())

    assert (report.reason, report.done) == (PassReason.HALTED, 0)
    assert EnvelopeTrip.objects.get().bar == EnvelopeBar.RSS


def _pause_once(marker: Path) -> None:
    try:
        eventually(marker.exists, "the first image")
        envelope.pause("me", "enough for today")
    finally:
        connections.close_all()


def test_the_command_leaves_no_pass_behind(source: Source) -> None:
    """Its last line is a pass's."""
    done = manage("stream_full_catalog", "--dry-run", "--name", "probe")

    assert done.stdout.splitlines()[-1] == "pass: reason=complete done=0 left=0 resume='probe'"
    assert done.returncode == 0 and not CatalogPass.objects.exists()
