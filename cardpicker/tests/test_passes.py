"""A pass over the catalog: what it walks over, where it stops, and that it can be taken up anywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from cardpicker.models import CardWork, CatalogPass, ImageEvidence, PilotRunLedger, Source
from cardpicker.stage_e import envelope
from cardpicker.stage_e.concurrency import try_acquire_dispatch_slot
from cardpicker.stage_e.dispatch import slot_settings
from cardpicker.stage_e.outcomes import ExitCode
from cardpicker.stage_e.passes import PassError, PassLimits, PassReason, PassScope, cards_of, open_pass, run_pass
from cardpicker.tests.cluster import manage
from cardpicker.tests.stage_e_support import make_cards, make_source, options, states

pytestmark = pytest.mark.django_db(transaction=True)

FREELY = PassLimits()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder that cards come from."""
    return make_source(tmp_path / "cards")


def settled(source: Source, count: int) -> list[Any]:
    """Return cards whose work is done, by nobody's doing."""
    cards = make_cards(source, count)
    CardWork.objects.update(due_at=None)
    return cards


def test_a_pass_brings_every_card_up_to_date(source: Source) -> None:
    """Cards that nothing marked due are read all the same."""
    cards = settled(source, 30)

    report = run_pass(open_pass(PassScope(name="all")), options(), FREELY)

    assert (report.reason, report.done, report.left, report.batches) == (PassReason.COMPLETE, 30, 0, 2)
    assert states(cards) == ["done"] * 30 and ImageEvidence.objects.count() == 30


def test_a_pass_is_taken_up_where_it_stopped(source: Source) -> None:
    """The second run works on what the first one left, and on nothing else."""
    settled(source, 30)
    first = run_pass(open_pass(PassScope(name="night")), options(), PassLimits(max_batches=1))

    second = run_pass(open_pass(PassScope(name="night")), options(), FREELY)

    assert (first.reason, first.done, first.left) == (PassReason.BATCH_LIMIT, 25, 5)
    assert (second.reason, second.done, second.batches) == (PassReason.COMPLETE, 30, 1)
    assert sum(PilotRunLedger.objects.values_list("stage_c_stored", flat=True)) == 30
    assert CatalogPass.objects.get().finished_at is not None


def test_a_pass_without_reextract_reads_nothing_twice(source: Source) -> None:
    """Current evidence is judged, not fetched."""
    settled(source, 3)
    run_pass(open_pass(PassScope(name="one")), options(), FREELY)

    run_pass(open_pass(PassScope(name="two")), options(), FREELY)

    runs = PilotRunLedger.objects.order_by("pk").values_list("stage_c_stored", "stage_c_current")
    assert list(runs) == [(3, 0), (0, 3)]


def test_reextract_reads_every_image_again(source: Source) -> None:
    """Evidence that is current is replaced."""
    settled(source, 3)
    run_pass(open_pass(PassScope(name="one")), options(), FREELY)

    run_pass(open_pass(PassScope(name="two", reextract=True)), options(), FREELY)

    assert set(ImageEvidence.objects.values_list("run_id", flat=True)) == {"pass-two"}


def test_a_sample_is_the_same_each_time(source: Source) -> None:
    """Drawn by the pass's name: the same name draws the same cards, another name others."""
    settled(source, 40)
    drawn = [
        set(cards_of(open_pass(PassScope(name=n, sample=8))).values_list("pk", flat=True)) for n in ("a", "a", "b")
    ]

    assert len(drawn[0]) == 8 and drawn[0] == drawn[1] != drawn[2]


def test_a_pass_keeps_to_its_source(source: Source, tmp_path: Path) -> None:
    """Another source's cards stay as they were."""
    mine, others = settled(source, 2), settled(make_source(tmp_path / "other"), 2)

    run_pass(open_pass(PassScope(name="mine", source_key=source.key)), options(), FREELY)

    assert set(ImageEvidence.objects.values_list("card_id", flat=True)) == {card.pk for card in mine}
    assert states(others) == ["done", "done"]


def test_quarantined_and_removed_cards_are_passed_by(source: Source) -> None:
    """A pass asks for nothing that only a person may ask for."""
    quarantined, removed, good = settled(source, 3)
    CardWork.objects.filter(card=quarantined).update(quarantined_at=timezone.now())
    type(removed).objects.filter(pk=removed.pk).update(removed_at=timezone.now())

    run_pass(open_pass(PassScope(name="all")), options(), FREELY)

    assert list(ImageEvidence.objects.values_list("card_id", flat=True)) == [good.pk]


def test_a_halt_stops_a_pass_without_losing_its_place(source: Source) -> None:
    """Acknowledged, the same name goes on."""
    settled(source, 3)
    trip = envelope.pause("me", "looking")
    halted = run_pass(open_pass(PassScope(name="night")), options(), FREELY)
    envelope.acknowledge_trip(trip.pk, "seen", "me")

    resumed = run_pass(open_pass(PassScope(name="night")), options(), FREELY)

    assert (halted.reason, halted.exit_code, halted.done) == (PassReason.HALTED, ExitCode.ENVELOPE, 0)
    assert (resumed.reason, resumed.done) == (PassReason.COMPLETE, 3)


def test_a_pass_waits_for_a_slot_within_its_budget(source: Source) -> None:
    """When the budget is spent, it stops and says so."""
    settled(source, 1)
    only = options(max_concurrent_dispatches=1)
    with try_acquire_dispatch_slot(slot_settings(only.settings)):
        report = run_pass(open_pass(PassScope(name="x")), only, PassLimits(throttle_budget_s=0))

    assert (report.reason, report.exit_code) == (PassReason.THROTTLED_OUT, ExitCode.THROTTLED_OUT)


def test_a_name_keeps_its_scope(source: Source) -> None:
    """A resumed pass cannot silently become another one."""
    open_pass(PassScope(name="night", source_key=source.key))

    with pytest.raises(PassError, match="another scope"):
        open_pass(PassScope(name="night", reextract=True))
    with pytest.raises(PassError, match="No source has the key 'nowhere'"):
        open_pass(PassScope(name="other", source_key="nowhere"))


def test_the_commands_last_line_can_be_read_by_a_program() -> None:
    """Reason, done, left and the name that resumes."""
    done = manage("stream_full_catalog", "--name", "empty catalog")
    off = manage("stream_full_catalog", "--name", "off", STAGE_E_STREAMING_ENABLED="0")

    assert done.stdout.splitlines()[-1] == "pass: reason=complete done=0 left=0 resume='empty catalog'"
    assert (done.returncode, off.returncode) == (0, 0)
