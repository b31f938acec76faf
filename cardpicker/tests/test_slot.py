"""The dispatch slot: a session lock that only its holder's end can free, and that a holder can be asked about."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import close_old_connections, connection
from django_q.tasks import async_task
from psycopg2 import extensions

from cardpicker.stage_e.concurrency import SlotSettings, try_acquire_dispatch_slot
from cardpicker.tests.slot_support import Server, new_host, watching
from cardpicker.tests.work_support import eventually

pytestmark = pytest.mark.django_db

HOLDER = """
import json, sys
from cardpicker.stage_e.concurrency import SlotSettings, try_acquire_dispatch_slot

with try_acquire_dispatch_slot(SlotSettings(**json.loads(sys.argv[1]))) as slot:
    print(slot, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def one_slot(db: None) -> SlotSettings:
    """A host of its own with one slot, on the tests' server."""
    return new_host()


@pytest.fixture
def server(one_slot: SlotSettings) -> Iterator[Server]:
    """A session that only looks."""
    with watching(one_slot) as server:
        yield server


def test_slots_are_given_out_until_none_is_left(one_slot: SlotSettings) -> None:
    """Each holder has a number of its own; the next is told at once that there is none, in the same process too."""
    two = dataclasses.replace(one_slot, slots=2)
    with (
        try_acquire_dispatch_slot(two) as first,
        try_acquire_dispatch_slot(two) as second,
        try_acquire_dispatch_slot(two) as third,
    ):
        assert (first, second, third) == (0, 1, None)


def test_slot_is_free_after_its_block_however_it_ends(one_slot: SlotSettings, server: Server) -> None:
    """An exception frees the slot as the end of the block does."""
    with try_acquire_dispatch_slot(one_slot):
        assert len(server.holders(one_slot)) == 1
    with contextlib.suppress(ZeroDivisionError), try_acquire_dispatch_slot(one_slot) as again:
        assert again == 0
        raise ZeroDivisionError

    assert server.holders(one_slot) == []


def test_freed_slot_in_the_middle_is_given_out_again(one_slot: SlotSettings, server: Server) -> None:
    """Releasing one slot leaves its neighbor held, and only the free one can be had."""
    two = dataclasses.replace(one_slot, slots=2)
    with contextlib.ExitStack() as outer:
        with try_acquire_dispatch_slot(two):
            outer.enter_context(try_acquire_dispatch_slot(two))
        assert len(server.holders(two)) == 1
        with try_acquire_dispatch_slot(two) as reused:
            assert reused == 0


def test_release_frees_nothing_but_its_own_key(one_slot: SlotSettings, server: Server) -> None:
    """Locks of other features, of the same numbers in another form too, are still held afterwards."""
    server.ask("SELECT pg_advisory_lock(%s), pg_advisory_lock(%s, 7)", 0, one_slot.namespace)
    with try_acquire_dispatch_slot(one_slot) as slot:
        assert slot == 0

    assert len(server.holders(one_slot)) == 1
    assert server.ask("SELECT pg_advisory_unlock(%s), pg_advisory_unlock(%s, 7)", 0, one_slot.namespace) == [
        (True,) * 2
    ]


@pytest.mark.parametrize("is_negative", [True, False])
def test_scopes_do_not_compete(one_slot: SlotSettings, is_negative: bool) -> None:
    """Every host has slots of its own; its lock's number fits, and is found again, on either side of zero."""
    scopes = (dataclasses.replace(one_slot, scope=f"{uuid.uuid4()}") for _ in range(100))
    other = next(each for each in scopes if (each.namespace < 0) is is_negative)
    same = dataclasses.replace(other, slots=1)
    assert same.namespace == other.namespace

    with try_acquire_dispatch_slot(one_slot) as mine, try_acquire_dispatch_slot(other) as others:
        assert mine == others == 0
        assert others is not None
        assert others.still_held()


@pytest.mark.django_db(transaction=True)
def test_lock_outlives_djangos_connection(one_slot: SlotSettings, server: Server) -> None:
    """Neither closing Django's connection nor an enqueue, which closes it too, frees the slot."""
    with try_acquire_dispatch_slot(one_slot) as slot:
        close_old_connections()
        async_task("builtins.len", [])
        connection.close()

        assert slot is not None
        assert slot.still_held()
        assert len(server.holders(one_slot)) == 1
        with try_acquire_dispatch_slot(one_slot) as rival:
            assert rival is None


def test_slot_is_free_within_seconds_of_a_kill(one_slot: SlotSettings, server: Server) -> None:
    """The server frees the slot of a process that had no chance to do so."""
    connect = {key: value for key, value in one_slot.connect.items() if key != "connection_factory"}
    told = json.dumps(dataclasses.asdict(dataclasses.replace(one_slot, connect=connect)))
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, told], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "0\n"
        assert len(server.holders(one_slot)) == 1

        holder.kill()

        assert eventually(lambda: server.holders(one_slot) == [], within_s=5.0)


def test_slot_outlives_a_forked_child(one_slot: SlotSettings, server: Server) -> None:
    """A child that inherited the slot's connection and ends takes nothing with it."""
    with try_acquire_dispatch_slot(one_slot) as slot:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)

        assert slot is not None
        assert slot.still_held()
        assert len(server.holders(one_slot)) == 1


def test_holder_learns_that_its_session_was_ended(
    one_slot: SlotSettings, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """A holder that lost its session is told so, its slot goes to the next, and leaving the block raises nothing."""
    with try_acquire_dispatch_slot(one_slot) as slot:
        assert slot is not None
        assert slot.still_held()
        (pid,) = server.holders(one_slot)
        server.ask("SELECT pg_terminate_backend(%s)", pid)
        assert eventually(lambda: server.holders(one_slot) == [])

        with try_acquire_dispatch_slot(one_slot) as successor:
            assert successor == 0
        assert not slot.still_held()
        assert not slot.still_held()

    assert "slot 0 is lost" in caplog.text
    assert "could not be released" in caplog.text


def test_slot_that_its_own_session_let_go_is_noticed(one_slot: SlotSettings, caplog: pytest.LogCaptureFixture) -> None:
    """A lock that is gone from a session that lives is reported by the holder's check and by the release."""
    opened: list[extensions.connection] = []

    class Recorded(extensions.connection):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            opened.append(self)

    recorded = dataclasses.replace(one_slot, connect={**one_slot.connect, "connection_factory": Recorded})
    with try_acquire_dispatch_slot(recorded) as slot, opened[0].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock_all()")
        assert slot is not None
        assert not slot.still_held()

    assert "slot 0 was not held by its own connection" in caplog.text


def test_session_of_a_slot_is_idle_and_has_a_name(one_slot: SlotSettings, server: Server) -> None:
    """It is seen as what it is, and never sits in a transaction, whose time-out would free the slot."""
    with try_acquire_dispatch_slot(one_slot) as slot:
        assert slot is not None
        assert slot.still_held()
        (pid,) = server.holders(one_slot)

        # The server reports its state a moment after it has sent its answer.
        sql = "SELECT application_name, state FROM pg_stat_activity WHERE pid = %s"
        assert eventually(lambda: server.ask(sql, pid) == [("cardpicker-slot", "idle")], within_s=5.0)


def test_slot_may_be_asked_from_several_threads(one_slot: SlotSettings) -> None:
    """A heartbeat that asks while another thread does confuses neither."""
    with try_acquire_dispatch_slot(one_slot) as slot, ThreadPoolExecutor(4) as pool:
        assert slot is not None
        assert all(pool.map(lambda _: slot.still_held(), range(100)))
