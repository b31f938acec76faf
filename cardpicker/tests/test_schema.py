"""A database of another version is named in a line, with what to do, by whatever meets it first."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from django.db import connection

from cardpicker.management.schema import behind, missing_migrations
from cardpicker.tests.cluster import database_url, manage

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bare_url() -> Iterator[str]:
    """Return the URL of a database without a single table."""
    name = f"bare_{uuid.uuid4().hex}"
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0")
    yield database_url().rsplit("/", 1)[0] + f"/{name}"
    with connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.parametrize(
    "command",
    [("stage_e_status",), ("stream_backstop_sweep",), ("qcluster",), ("pause_dispatch", "--note", "a note")],
    ids=lambda command: command[0],
)
def test_a_database_that_lacks_migrations_is_one_line(command: tuple[str, ...], bare_url: str) -> None:
    """No traceback, and no cluster that starts and then fails task by task."""
    ran = manage(*command, CARDPICKER_DATABASE_URL=bare_url)

    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr
    line = ran.stderr.splitlines()[-1]
    assert "The database lacks" in line and "run `python manage.py migrate`" in line


def test_a_database_of_this_version_lacks_nothing() -> None:
    """What the tests run on is whole; one missing migration is named."""
    assert missing_migrations() == []
    assert behind(["cardpicker.0009_x"]).startswith("The database lacks 1 migration of this version, cardpicker.0009_x")
