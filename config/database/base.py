"""Django's PostgreSQL backend with the server looked up at each connect.

The server is ``CARDPICKER_DATABASE_URL``, else the embedded one, whose port may change between restarts;
a long-lived worker that reconnects therefore finds it again. Every session carries time-outs on both ends,
so that neither a silent network nor a dead client holds anything for long.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dj_database_url
import psycopg2
from django.db.backends.postgresql import base
from django.db.utils import OperationalError

from config.database.deadline import answering_within

NO_DATABASE = "no database: run scripts/ops/postgres.py start or set CARDPICKER_DATABASE_URL"
#: The URL itself is not repeated: it may hold a password.
NOT_A_URL = (
    "CARDPICKER_DATABASE_URL is not a PostgreSQL URL: set it to one such as postgres://user:password@host:5432/name,"
    " or unset it and run scripts/ops/postgres.py start"
)

#: libpq's side: a silent network is an error within about a minute.
CLIENT_KEEPALIVES: dict[str, int] = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 50_000,
}

#: The server's side, as settings of each session.
SERVER_OPTIONS: dict[str, str] = {
    "idle_in_transaction_session_timeout": "300s",
    "client_connection_check_interval": "5s",
    "tcp_keepalives_idle": "20",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "50s",
}
#: How much longer than the server works on a statement the client waits for its answer.
ANSWER_GRACE_S = 10
#: Who holds a slot waits less: what it asks is answered at once.
SLOT_ANSWER_S = 20


def session_options(statement_timeout_s: int) -> dict[str, Any]:
    """Return psycopg2's parameters that bound how long either end waits for the other."""
    server = {"statement_timeout": f"{statement_timeout_s}s", **SERVER_OPTIONS}
    return {
        **CLIENT_KEEPALIVES,
        "connection_factory": answering_within(statement_timeout_s + ANSWER_GRACE_S),
        "options": " ".join(f"-c {name}={value}" for name, value in server.items()),
    }


class NoDatabaseError(OperationalError):
    """No database can be reached; the message says what to run or set."""


def database_url(data_dir: Path) -> str | None:
    """Return the URL of the server to use now, or None when there is none."""
    if url := os.environ.get("CARDPICKER_DATABASE_URL"):
        return url
    try:
        return (data_dir / "postgres" / "url").read_text(encoding="utf-8").strip() or None
    except OSError:
        return None


class DatabaseWrapper(base.DatabaseWrapper):
    """The backend; ``DATABASES["default"]["DATA_DIR"]`` says where the embedded server leaves its URL."""

    def __init__(self, settings_dict: dict[str, Any], alias: str = "default") -> None:
        super().__init__(settings_dict, alias)
        if self.settings_dict.get("NAME") == "" and database_url(Path(self.settings_dict["DATA_DIR"])):
            # The name of a test database is derived from it before anything connects.
            self.settings_dict["NAME"] = self._locate().get("NAME", "")

    def get_connection_params(self) -> dict[str, Any]:
        """Return psycopg2's parameters for the server that is there now.

        Raises:
            NoDatabaseError: no URL is set and no embedded server has been started.
        """
        located = self._locate()
        for key in ("HOST", "PORT", "USER", "PASSWORD"):
            self.settings_dict[key] = located.get(key, "")
        if self.settings_dict.get("NAME") == "":
            self.settings_dict["NAME"] = located.get("NAME", "")
        params = super().get_connection_params()
        params.update({key: value for key, value in located.get("OPTIONS", {}).items() if key not in params})
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Open a connection, naming what to do when it is refused."""
        try:
            return super().get_new_connection(conn_params)
        except psycopg2.Error as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise NoDatabaseError(f"{NO_DATABASE} ({reason})") from error

    def set_autocommit(self, autocommit: bool, force_begin_transaction_with_broken_autocommit: bool = False) -> None:
        """Leave a session that was lost in a transaction lost.

        Django would open another one just to end that transaction: on a silent network that takes until the connect's
        own time-out, and its error hides the one that tells what happened.
        """
        if autocommit and self.connection is None and self.settings_dict["AUTOCOMMIT"]:
            self.autocommit = True
            return
        super().set_autocommit(autocommit, force_begin_transaction_with_broken_autocommit)

    def _locate(self) -> dict[str, Any]:
        url = database_url(Path(self.settings_dict["DATA_DIR"]))
        if url is None:
            raise NoDatabaseError(NO_DATABASE)
        try:
            located: dict[str, Any] = dict(dj_database_url.parse(url))
        except (ValueError, KeyError) as error:
            raise NoDatabaseError(NOT_A_URL) from error
        if not located.get("NAME") or not located["ENGINE"].endswith(".postgresql"):
            raise NoDatabaseError(NOT_A_URL)
        return located
