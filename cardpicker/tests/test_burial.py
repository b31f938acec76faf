"""Runs that cannot write any more are found by their slots, whoever their owner is and however lively."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

import pytest

from cardpicker.models import PilotRunLedger, RunStatus
from cardpicker.stage_e import ledger
from cardpicker.stage_e.burial import bury_runs
from cardpicker.stage_e.concurrency import try_acquire_dispatch_slot
from cardpicker.tests.slot_watch import slots_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def host(settings: Any) -> str:
    """The name of a host that nobody else is."""
    name = f"host-{uuid.uuid4()}"
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, host_id=name)
    return name


def opened(slot: int) -> uuid.UUID:
    """Open a run of this living process in a slot."""
    batch = uuid.uuid4()
    ledger.open_run(batch, run_id="r", trigger_reason="test", slot=slot, batch_size=1)
    return batch


def test_a_run_whose_slot_is_held_is_left_alone(host: str) -> None:
    """It writes still."""
    with try_acquire_dispatch_slot(slots_of(host)) as slot:
        assert slot is not None
        opened(slot)

        assert bury_runs() == []


def test_a_run_whose_slot_is_free_is_dead_although_its_process_lives(host: str) -> None:
    """A worker whose session was cut off may live on for days, and its row would say RUNNING for as long."""
    with try_acquire_dispatch_slot(slots_of(host)) as slot:
        assert slot is not None
        batch = opened(slot)

    assert bury_runs() == [batch]
    run = PilotRunLedger.objects.get()
    assert (run.status, run.reason) == (RunStatus.INTERRUPTED, "its slot was lost")
    assert bury_runs() == []


def test_a_slot_keeps_only_the_youngest_of_its_runs_alive(host: str) -> None:
    """Whoever holds the slot now opened its row last."""
    cut_off = opened(0)
    with try_acquire_dispatch_slot(slots_of(host)) as slot:
        assert slot is not None
        alive = opened(slot)

        assert bury_runs() == [cut_off]
        assert PilotRunLedger.objects.get(status=RunStatus.RUNNING).batch_id == alive


def test_another_hosts_slot_of_the_same_number_is_another_slot(host: str) -> None:
    """Each host has slots of its own, and what one holds keeps no run of the other alive."""
    batch = opened(0)
    with try_acquire_dispatch_slot(slots_of("elsewhere")):
        assert bury_runs() == [batch]


def test_another_hosts_run_is_closed_once_its_slot_is_gone(host: str) -> None:
    """A host that died is not waited for longer than its session lasts."""
    batch = opened(0)
    PilotRunLedger.objects.update(host="elsewhere")

    assert bury_runs() == [batch]
