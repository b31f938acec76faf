"""Without a database, or with a wrong setting, a command says what to do in a line and ends with 1."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections, transaction

from config.database.base import NO_DATABASE, DatabaseWrapper, NoDatabaseError

PATIENCE_S = 60.0


def manage(*arguments: str, data: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a management command with no database but what ``variables`` name."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("CARDPICKER_", "STAGE_", "Q_"))}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=ours | {"CARDPICKER_DATA_DIR": str(data), "STAGE_E_HOST_LOAD_CEILING": "0.1"} | variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def only_line(result: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a refused command says, having checked that it says no more and fails."""
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


@pytest.mark.parametrize("command", [("check",), ("resolve_envelope_trip", "--help")])
def test_what_needs_no_database_works_without(command: tuple[str, ...], tmp_path: Path) -> None:
    """Settings import, and checks run, where there is no server."""
    assert manage(*command, data=tmp_path).returncode == 0


@pytest.mark.parametrize("command", ["migrate", "resolve_envelope_trip", "qcluster"])
def test_command_that_needs_a_database_says_what_to_do(command: str, tmp_path: Path) -> None:
    """Nothing set and nothing started: one line, no traceback."""
    assert only_line(manage(command, data=tmp_path)) == NO_DATABASE


def test_server_that_was_stopped_is_said_to_be_missing(tmp_path: Path) -> None:
    """The address that the embedded server left behind leads nowhere."""
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres" / "url").write_text("postgres://postgres@127.0.0.1:1/cardpicker\n")

    line = only_line(manage("resolve_envelope_trip", data=tmp_path))

    assert line.startswith(f"{NO_DATABASE} (connection to server")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("postgres://postgres@127.0.0.1:1/nowhere", "Connection refused"),
        ("postgres://postgres@no-such-host.invalid/nowhere", "no-such-host.invalid"),
        ("postgres:///nowhere?host=/no/such/folder", "No such file or directory"),
        ("postgres://127.0.0.1/x?sslmode=bogus", "sslmode"),
        ("postgres://127.0.0.1/x?nonsense=1", "nonsense"),
    ],
)
def test_url_that_leads_nowhere_is_refused_with_the_reason(
    url: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the driver says is kept, behind what to do, on one line."""
    monkeypatch.setenv("CARDPICKER_DATABASE_URL", url)

    with pytest.raises(NoDatabaseError) as raised:
        DatabaseWrapper({**connections.settings["default"], "NAME": ""}).connect()

    (line,) = str(raised.value).splitlines()
    assert line.startswith(f"{NO_DATABASE} (")
    assert reason in line


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "sqlite:///x.db",
        "mysql://user@127.0.0.1/x",
        "postgres://user:secret@127.0.0.1:port/x",
        "postgres://user:secret@127.0.0.1:5432",
        "postgres://[secret/x",
    ],
)
def test_url_that_is_none_is_refused(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message shows what a URL looks like, and repeats no password."""
    monkeypatch.setenv("CARDPICKER_DATABASE_URL", url)

    with pytest.raises(NoDatabaseError, match="is not a PostgreSQL URL: set it to one such as postgres://") as raised:
        DatabaseWrapper({**connections.settings["default"], "NAME": ""}).connect()
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [("postgres://postgres@127.0.0.1:1/x", NO_DATABASE), ("nonsense", "CARDPICKER_DATABASE_URL is not")],
)
def test_command_ends_with_what_the_url_is_refused_with(url: str, says: str, tmp_path: Path) -> None:
    """Neither a dead address nor a malformed one shows a traceback."""
    line = only_line(manage("migrate", data=tmp_path, CARDPICKER_DATABASE_URL=url))

    assert line.startswith(says)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("STAGE_E_MICRO_BATCH_SIZE", "5", "10 to 100"),
        ("CARDPICKER_TIME_ZONE", "Mars/Phobos", "Europe/Berlin"),
        ("CARDPICKER_TIME_ZONE", "Europe", "Europe/Berlin"),
        ("CARDPICKER_DATA_DIR", "/dev/null/data", "a folder that can be written"),
    ],
)
def test_setting_that_is_not_allowed_is_refused(variable: str, value: str, says: str, tmp_path: Path) -> None:
    """Every command, also one that needs no database, names the variable and what is allowed."""
    line = only_line(manage("check", data=tmp_path, **{variable: value}))

    assert line.startswith(variable)
    assert says in line


@pytest.mark.django_db(transaction=True)
def test_session_lost_in_a_transaction_is_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other session is opened to end the transaction: where there is no server, its error would be the only one told."""
    connection.ensure_connection()
    monkeypatch.setenv("CARDPICKER_DATABASE_URL", "postgres://postgres@127.0.0.1:1/nowhere")
    with pytest.raises(OperationalError) as raised, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    assert not isinstance(raised.value, NoDatabaseError)
    monkeypatch.undo()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")
