"""Run a program so that it and all it started end with an owner, however the owner ends.

The program gets a session of its own. At the owner's end, or on SIGTERM, it is asked to stop; what is left of its process
group after a while is killed. ``python -m scripts.ops.supervise OWNER_PID COMMAND…``
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from scripts.ops.embedded.processes import end_with_parent, is_alive, wait_for_end

PROJECT = Path(__file__).resolve().parents[2]
PATIENCE_S = 10.0


class Supervised:
    """A program under supervision, as its owner sees it."""

    def __init__(self, command: list[str], *, environment: dict[str, str], log: Path) -> None:
        """Start ``command``, its words going to ``log``."""
        self.log = log
        self.begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-m", "scripts.ops.supervise", str(os.getpid()), *command],
                cwd=PROJECT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        """Whether the program has ended."""
        return self._supervisor.poll() is not None

    def ask_to_stop(self) -> None:
        """Ask the program to stop, without waiting for it."""
        with contextlib.suppress(ProcessLookupError):
            self._supervisor.terminate()

    def wait(self) -> None:
        """Wait until the program and all it started are gone."""
        self._supervisor.wait()


def tail(log: Path, begin: int, lines: int) -> str:
    """Return the last lines that were written to ``log`` after byte ``begin``, indented."""
    with log.open("rb") as written:
        written.seek(begin)
        return "\n".join(f"  {line}" for line in written.read().decode(errors="replace").splitlines()[-lines:])


def main(arguments: list[str]) -> int:
    """Be the supervisor."""
    owner_pid, command = int(arguments[0]), arguments[1:]
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, lambda signum, frame: sys.exit(0))
    child = subprocess.Popen(
        command,
        start_new_session=True,
        preexec_fn=lambda: end_with_parent(signal.SIGTERM),  # noqa: PLW1509 (no threads here)
    )
    try:
        if is_alive(owner_pid):
            wait_for_end([owner_pid, child.pid])
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        code = _end(child)
    return code


def _end(child: subprocess.Popen[bytes]) -> int:
    """End the program, then whatever is left of its group."""
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(PATIENCE_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    code = child.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
