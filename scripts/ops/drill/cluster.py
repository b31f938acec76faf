"""A ``qcluster`` under a supervisor that does what a service manager does, and the sweep that cron runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from scripts.ops.drill.processes import members

PROJECT = Path(__file__).resolve().parents[3]
END_PATIENCE_S = 10.0
#: A supervisor waits a little before it starts a service that ended; one that ends at once would else be started for ever.
RESTART_AFTER_S = 1.0


class Cluster:
    """One cluster in a session of its own; when its main process ends, the whole group is ended and it starts anew."""

    def __init__(self, log: Path, environment: Mapping[str, str]) -> None:
        self._log = log
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._ended_at = 0.0
        self.sessions: list[int] = []
        self.starts = 0

    @property
    def pid(self) -> int:
        """The main process; 0 when there is none."""
        return self._process.pid if self._process is not None and self._process.poll() is None else 0

    def supervise(self) -> None:
        """Start the cluster if it does not run, once its old group has been ended."""
        if self._process is not None:
            if self._process.poll() is None:
                return
            self._end_group()
        if time.monotonic() - self._ended_at < RESTART_AFTER_S:
            return
        self._process = _started("qcluster", self._environment, self._log)
        self.sessions.append(self._process.pid)
        self.starts += 1

    def kill(self) -> None:
        """End the cluster and all that it started, at once."""
        if self._process is not None:
            self._end_group()

    def _end_group(self) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        deadline = time.monotonic() + END_PATIENCE_S
        while members([self._process.pid]) and time.monotonic() < deadline:
            time.sleep(0.05)
        self._process = None
        self._ended_at = time.monotonic()


class Cron:
    """Runs the sweep every few seconds, one at a time, and keeps what it said."""

    def __init__(self, log: Path, environment: Mapping[str, str], every_s: float) -> None:
        self._log = log
        self._environment = dict(environment)
        self._every_s = every_s
        self._process: subprocess.Popen[bytes] | None = None
        self._begun_at = 0.0
        self.sessions: list[int] = []

    @property
    def pid(self) -> int:
        """The sweep at work; 0 when there is none."""
        return self._process.pid if self._process is not None and self._process.poll() is None else 0

    def tick(self) -> None:
        """Start a sweep if the last one has ended and its time has come."""
        if self.pid or time.monotonic() - self._begun_at < self._every_s:
            return
        self._begun_at = time.monotonic()
        self._process = _started("stream_backstop_sweep", self._environment, self._log)
        self.sessions.append(self._process.pid)

    def tracebacks(self) -> int:
        """Return how many sweeps have shown a traceback instead of saying what was wrong."""
        return self._log.read_text(errors="replace").count("Traceback") if self._log.exists() else 0

    def postpone(self) -> None:
        """Let the next sweep wait for its full interval."""
        self._begun_at = time.monotonic()

    def finish(self, patience_s: float) -> bool:
        """Wait for the sweep at work; False when it does not end, and is killed."""
        if self._process is None:
            return True
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            return False
        return True


def _started(command: str, environment: Mapping[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a management command in a session of its own, so that all of it can be ended at once."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "manage.py", command],
            cwd=PROJECT,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
