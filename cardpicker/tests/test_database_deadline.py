"""A database that does not answer is an error in time, whatever keeps the connection open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import psycopg2
import pytest
from django.db import connection

from config.database.deadline import WatchedConnection, answering_within

pytestmark = pytest.mark.django_db

Connect = Callable[[float], WatchedConnection]


@pytest.fixture
def connect(db: None) -> Iterator[Connect]:
    """Open connections to the tests' server that are given up when no answer comes for so many seconds."""
    opened: list[WatchedConnection] = []
    parameters = dict(connection.get_connection_params())
    parameters.pop("cursor_factory", None)

    def open_one(answer_within_s: float) -> WatchedConnection:
        made = psycopg2.connect(**{**parameters, "connection_factory": answering_within(answer_within_s)})
        assert isinstance(made, WatchedConnection)
        opened.append(made)
        return made

    yield open_one
    for each in opened:
        each.close()


def test_statement_without_an_answer_is_an_error(connect: Connect) -> None:
    """The connection is given up, and another one is none the worse."""
    silent, other = connect(0.1), connect(60)
    with pytest.raises(psycopg2.OperationalError):
        silent.cursor().execute("SELECT pg_sleep(30)")
    assert silent.closed
    with other.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchone() == (1,)


def test_deadline_is_for_one_answer_and_not_for_a_session(connect: Connect) -> None:
    """What is answered in time goes on for as long as it likes: statements, named cursors, ends of transactions."""
    patient = connect(3)
    for _ in range(5):
        with patient.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(1)")
        patient.commit()
    with patient.cursor("named") as cursor:
        cursor.execute("SELECT generate_series(1, 3)")
        assert cursor.fetchmany(2) == [(1,), (2,)]
    patient.rollback()


def test_forked_process_keeps_deadlines_of_its_own(connect: Connect) -> None:
    """The thread that looks stays with the parent, where it was started long before."""
    with connect(60).cursor() as cursor:
        cursor.execute("SELECT 1")
    child = os.fork()
    if not child:
        try:
            connect(0.1).cursor().execute("SELECT pg_sleep(30)")
        except psycopg2.OperationalError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_the_tests_own_connection_has_a_deadline() -> None:
    """What Django opens is watched, cursors included."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        watched = cursor.connection
    assert isinstance(watched, WatchedConnection)
    assert watched.answer_within_s > connection.settings_dict["STATEMENT_TIMEOUT_S"]
