"""Start-up checks: what would lose work, double it or wedge a host is refused by name."""

from __future__ import annotations

import dataclasses
import uuid
from typing import Any

import pytest
from django.core import checks as django_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection
from pytest_django import Settings

from cardpicker import checks
from cardpicker.stage_c.settings import usable_cores


def ids(found: list[django_checks.CheckMessage]) -> list[str | None]:
    """Return the ids of messages, each of which says what to do."""
    assert all(message.hint or message.id == "cardpicker.E006" for message in found)
    return [message.id for message in found]


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"daemonize_workers": True}, ["cardpicker.E001"]),
        ({"daemonize_workers": None}, ["cardpicker.E001"]),
        ({"timeout": 300, "retry": 300}, ["cardpicker.E002"]),
        ({"timeout": 300, "retry": 301}, []),
        ({"timeout": None}, ["cardpicker.E002"]),
        ({"timeout": 0}, ["cardpicker.E002"]),
        ({"timeout": 61, "retry": None}, ["cardpicker.E002"]),
        ({"cpu_affinity": 1}, ["cardpicker.E003"]),
        ({"cpu_affinity": 0}, []),
        ({"guard_cycle": 0.3}, ["cardpicker.E004"]),
        ({"guard_cycle": 0.25}, []),
        ({"guard_cycle": None}, []),
        ({"daemonize_workers": True, "cpu_affinity": 2}, ["cardpicker.E001", "cardpicker.E003"]),
    ],
)
def test_queue_under_which_tasks_cannot_work_is_refused(
    settings: Settings, changes: dict[str, Any], found: list[str]
) -> None:
    """Each trap of django-q2 has an error of its own; a value that is left out is judged as django-q2's default."""
    cluster = {**settings.Q_CLUSTER, **changes}
    settings.Q_CLUSTER = {key: value for key, value in cluster.items() if value is not None}

    assert ids(checks.check_queue(None)) == found


@pytest.mark.parametrize(
    ("deadline_s", "timeout_s", "found"),
    [
        (270.0, 300, []),
        (270.1, 300, ["cardpicker.E005"]),
        (float("inf"), 300, ["cardpicker.E005"]),
        (10.0, None, ["cardpicker.E005"]),
    ],
)
def test_deadline_that_the_queue_overtakes_is_refused(
    settings: Settings, deadline_s: float, timeout_s: int | None, found: list[str]
) -> None:
    """A batch has the time to close its row before django-q2 ends its process."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, batch_deadline_s=deadline_s)
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "timeout": timeout_s}

    assert ids(checks.check_deadlines(None)) == found


def test_traps_stop_whatever_is_started(settings: Settings) -> None:
    """The checks are registered, and an operator's commands ask them too."""
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "daemonize_workers": True}

    with pytest.raises(SystemCheckError, match=r"cardpicker\.E001"):
        call_command("check")
    with pytest.raises(SystemCheckError, match=r"cardpicker\.E001"):
        call_command("check", tags=list(checks.OPERATOR_CHECKS))


def test_project_as_it_is_passes() -> None:
    """What the environment sets by default is refused by none."""
    call_command("check", fail_level="ERROR")


@pytest.mark.parametrize(("above", "found"), [(0.0, []), (0.5, ["cardpicker.W001"])])
def test_load_ceiling_above_the_cores_is_warned_of(settings: Settings, above: float, found: list[str]) -> None:
    """A ceiling that a host never reaches protects nothing; as many as there are cores is right."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, host_load_ceiling=usable_cores() + above)

    assert ids(checks.check_host(None)) == found


@pytest.mark.parametrize(("slots", "found"), [(1, []), (0, ["cardpicker.W002"]), (-3, ["cardpicker.W002"])])
def test_fewer_slots_than_one_are_one_with_a_warning(settings: Settings, slots: int, found: list[str]) -> None:
    """Zero slots would stop dispatch without a word; there is a flag and a pause for that."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, max_concurrent_dispatches=slots, host_load_ceiling=0.5)

    assert ids(checks.check_host(None)) == found
    assert settings.STAGE_E.slots == 1


@pytest.mark.django_db
def test_slots_connection_is_tried_only_when_databases_are_checked(settings: Settings) -> None:
    """``check`` alone needs no server; ``migrate`` and ``qcluster`` name an address that does not answer."""
    assert checks.check_slot_connection(None, databases=["default"]) == []
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, lock_dsn="host=127.0.0.1 port=1")

    assert checks.check_slot_connection(None) == []
    assert checks.check_slot_connection(None, databases=["another"]) == []
    assert ids(checks.check_slot_connection(None, databases=["default"])) == ["cardpicker.E007"]
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, lock_dsn="nonsense")
    assert ids(checks.check_slot_connection(None, databases=["default"])) == ["cardpicker.E007"]


@pytest.mark.django_db
def test_more_workers_than_the_server_has_connections_for_are_warned_of(settings: Settings) -> None:
    """Asked only where databases are checked; each worker needs three."""
    assert checks.check_connections(None, databases=["default"]) == []

    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, q_workers=500)

    assert checks.check_connections(None, databases=["another"]) == []
    (warning,) = checks.check_connections(None, databases=["default"])
    assert warning.id == "cardpicker.W003"
    assert "may need 1510 connections" in warning.msg


@pytest.mark.django_db(transaction=True)
def test_database_that_cannot_hold_every_name_is_refused(settings: Settings) -> None:
    """A server without a locale makes such databases; the message says how to make another."""
    assert checks.check_encoding(None, databases=["default"]) == []

    name = f"ascii_{uuid.uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LOCALE 'C'"
        )
    usual = connection.settings_dict["NAME"]
    try:
        connection.close()
        connection.settings_dict["NAME"] = name
        found = checks.check_encoding(None, databases=["default"])
    finally:
        connection.close()
        connection.settings_dict["NAME"] = usual
        with connection.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")

    assert ids(found) == ["cardpicker.E008"] and "SQL_ASCII" in found[0].msg
