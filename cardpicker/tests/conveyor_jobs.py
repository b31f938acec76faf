"""What the conveyor's tests run in compute processes: importable by name, each with one trait."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

#: What a test leaves for a forked child to inherit.
INHERITED: list[Any] = []
PATIENCE_S = 60.0
POLL_S = 0.005


class TwoArgumentError(Exception):
    """An exception that pickles and does not unpickle."""

    def __init__(self, what: str, where: str) -> None:
        super().__init__(f"{what} at {where}")


class UnpicklableError(Exception):
    """An exception that does not pickle."""

    def __init__(self) -> None:
        super().__init__("holds a handle")
        self.handle = open(os.devnull)  # noqa: SIM115


class SpeechlessError(Exception):
    """An exception whose message cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError


def echo(body: bytes, context: Any) -> Any:
    """Return what came, and who answers."""
    return body, context, os.getpid()


def take_time(body: bytes, context: float) -> bytes:
    """Work for ``context`` seconds."""
    time.sleep(context)
    return body


def pid_after(body: bytes, context: float) -> int:
    """Work for ``context`` seconds and return who did."""
    time.sleep(context)
    return os.getpid()


def fail(body: bytes, context: Any) -> Any:
    """Raise."""
    raise ValueError(f"no good: {context}")


def wait_for_file(body: bytes, context: str) -> bytes:
    """Work until the file ``context`` exists."""
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(context) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    return body


def meet(body: bytes, context: tuple[str, int]) -> int:
    """Work until ``context[1]`` processes have come to the folder ``context[0]``."""
    folder, count = context
    Path(folder, str(os.getpid())).touch()
    while len(os.listdir(folder)) < count:
        time.sleep(POLL_S)
    return os.getpid()


def misbehave(body: bytes, context: Any) -> Any:
    """Do what ``context`` says, or return the process's number."""
    match context:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang":
            time.sleep(PATIENCE_S)
        case "leave":
            sys.exit(7)
        case "unpicklable error":
            raise UnpicklableError
        case "two-argument error":
            raise TwoArgumentError("trouble", "home")
        case "speechless error":
            raise SpeechlessError
        case "unpicklable value":
            return open(os.devnull)
        case "value that does not unpickle":
            return TwoArgumentError("trouble", "home")
    return os.getpid()


def miss_the_death_signal(body: bytes, context: Any) -> None:
    """Take back the wish to be told of the parent's death, say so, and work on."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, 0)
    os.write(sys.stdout.fileno(), b"deaf\n")
    time.sleep(PATIENCE_S)


def describe_surroundings(body: bytes, context: Any) -> dict[str, Any]:
    """Return what this process has of its parent's."""
    modes = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            modes[int(name)] = os.fstat(int(name)).st_mode
    database = sys.modules.get("django.db")
    connections = [] if database is None else database.connections.all(initialized_only=True)
    return {
        "sockets": sum(stat.S_ISSOCK(mode) for fd, mode in modes.items() if fd > 2),
        "pipes": sum(stat.S_ISFIFO(mode) for fd, mode in modes.items() if fd > 2),
        "open connections": sum(connection.connection is not None for connection in connections),
        "threads": {name: os.environ.get(name) for name in ("OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS")},
        "niceness": os.nice(0),
        "threads at import": THREADS_AT_IMPORT,
        "SIGINT": signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        "SIGTERM": signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
        "SIGUSR1": signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL,
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    }


def close_inherited(body: bytes, context: str) -> bool:
    """Open files, close what was inherited, and return whether the files are still this process's own."""
    files = [open(context, "wb") for _ in range(32)]  # noqa: SIM115
    for inherited in INHERITED:
        inherited.close()
    for file in files:
        file.write(b"mine")
        file.close()
    return True


def log_a_line(body: bytes, context: Any) -> bytes:
    """Log, which takes locks that a forked child may have inherited locked."""
    logging.getLogger("conveyor.drill").warning("a line from %s", os.getpid())
    return body


def grow(body: bytes, context: int) -> int:
    """Keep ``context`` MB for good."""
    INHERITED.append(b"x" * (context << 20))
    return os.getpid()


def initialize_badly() -> None:
    """Raise at the start of a process."""
    raise RuntimeError("no OCR engine here")


def die_at_start(folder: str) -> None:
    """Leave a trace and end the process."""
    Path(folder, str(os.getpid())).touch()
    os.kill(os.getpid(), signal.SIGKILL)


def stop_at_first_start(folder: str) -> None:
    """Stop the first process that comes to the folder ``folder``."""
    with contextlib.suppress(FileExistsError):
        Path(folder, "first").touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGSTOP)


#: A native library reads its limit when it is loaded, at the latest when this module is imported.
THREADS_AT_IMPORT = os.environ.get("OMP_THREAD_LIMIT")
