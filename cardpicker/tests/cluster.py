"""A real ``qcluster`` in a session of its own, on the test's own database."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from django.conf import settings
from django.db import connection

PATIENCE_S = 90.0


def database_url() -> str:
    """Return the URL of the database that the test itself uses."""
    at = connection.settings_dict
    user, password = (urllib.parse.quote(str(at[key]), safe="") for key in ("USER", "PASSWORD"))
    login = f"{user}:{password}" if password else user
    return f"postgres://{login}@{at['HOST']}:{at['PORT']}/{at['NAME']}"


def environment(**extra: str) -> dict[str, str]:
    """Return an environment in which commands stream, on the test's database, whatever the host's load."""
    return {
        **os.environ,
        "CARDPICKER_DATABASE_URL": database_url(),
        "STAGE_E_STREAMING_ENABLED": "1",
        "STAGE_E_HOST_LOAD_CEILING": "10000",
        "SOURCES_SYNC_HOURS": "0",  # A sync would take the test's cards for changed: they are made without one.
        **extra,
    }


def manage(*arguments: str, inside: Sequence[str] = (), **extra: str) -> subprocess.CompletedProcess[str]:
    """Run a management command, ``inside`` what leads to another network, and return its output."""
    command = [*inside, sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=environment(**extra),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@contextlib.contextmanager
def running_cluster(log: Path, *, inside: Sequence[str] = (), **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``manage.py qcluster``, ``inside`` what leads to another network, until the block ends; then end its group."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*inside, sys.executable, "manage.py", "qcluster"],
            cwd=settings.BASE_DIR,
            env=environment(**extra),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            eventually(lambda: not members(process.pid), "the cluster's group to end")


def members(session: int) -> list[psutil.Process]:
    """Return the living processes of a session."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def eventually(condition: Callable[[], Any], what: str, within_s: float = PATIENCE_S) -> Any:
    """Wait until ``condition`` is truthy and return its value.

    Raises:
        AssertionError: it was not within ``within_s`` seconds.
    """
    deadline = time.monotonic() + within_s
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"waited {within_s:g} s for {what}"
        time.sleep(0.05)
