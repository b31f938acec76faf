"""Looking at processes: whether one lives, what it is, and waiting for its end.

Standard library only. ``/proc`` answers on Linux; elsewhere a process counts as what its file says it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PR_SET_PDEATHSIG = 1
POLL_INTERVAL_S = 0.3
HAS_PROC = Path("/proc/self/cwd").exists()


def is_alive(pid: int) -> bool:
    """Tell whether process ``pid`` exists and is not a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    return True


def was_started_with(pid: int, argument: str) -> bool:
    """Tell whether ``argument`` is on the command line of process ``pid``; True where that cannot be seen."""
    if not HAS_PROC:
        return True
    try:
        return argument.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


def processes_in(folder: Path) -> Iterator[int]:
    """Yield every process whose working folder is ``folder``; none where that cannot be seen."""
    if not HAS_PROC:
        return
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and Path(os.readlink(entry / "cwd")) == folder and is_alive(int(entry.name)):
                yield int(entry.name)


def wait_for_end(pids: list[int], timeout_s: float | None = None) -> list[int]:
    """Wait until one of ``pids`` has ended.

    Returns:
        Those that have ended; empty when the time was over first.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    with contextlib.ExitStack() as stack:
        handles = _handles(pids, stack)
        while True:
            ended = [pid for pid in pids if not is_alive(pid)]
            left = None if deadline is None else deadline - time.monotonic()
            if ended or (left is not None and left <= 0):
                return ended
            if handles is None:
                time.sleep(min(POLL_INTERVAL_S, left or POLL_INTERVAL_S))
            else:
                select.select(handles, [], [], left)


def _handles(pids: list[int], stack: contextlib.ExitStack) -> list[int] | None:
    """Open a handle that becomes readable at the end of each process, or None where the system has no such thing."""
    handles = []
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return []
        except (AttributeError, OSError):
            return None
        stack.callback(os.close, handle)
        handles.append(handle)
    return handles


def end_with_parent(signum: int = signal.SIGINT) -> None:
    """Ask the kernel to send ``signum`` to this process when its parent ends; for use between fork and exec.

    The parent is the thread that forked, so only a main thread that lives as long as its process may start such children.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signum, 0, 0, 0)


def run_in_foreground(command: list[str], environment: dict[str, str]) -> int:
    """Run a command for the terminal, end it when this process ends, and return its exit code as a shell would give it."""
    child = subprocess.Popen(
        command,
        env=environment,
        preexec_fn=lambda: end_with_parent(signal.SIGTERM),  # noqa: PLW1509 (a call into libc, no lock)
    )
    # The terminal sends its Ctrl-C to the command as well, which decides what to do about it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda signum, frame: child.terminate())
    code = child.wait()
    return code if code >= 0 else 128 - code
