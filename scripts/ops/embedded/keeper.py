"""A server that is stopped with the process that asked for it, however that process ends.

A keeper of its own session starts the server, waits for the end of its owner and stops the server. The kernel stops the
server when the keeper itself is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.ops.embedded.account import can_enter, server_account
from scripts.ops.embedded.binaries import PROJECT
from scripts.ops.embedded.errors import EmbeddedServerError
from scripts.ops.embedded.place import Place
from scripts.ops.embedded.processes import wait_for_end
from scripts.ops.embedded.server import start, stop

MODULE = "scripts.ops.embedded.keeper"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptServer:
    """A server with an owner, or one that ran before and stays."""

    url: str
    data_dir: Path
    keeper: subprocess.Popen[bytes] | None  #: None when the server ran before.

    def stop(self) -> None:
        """Stop the server now, if it was started for this owner."""
        if self.keeper is not None:
            with contextlib.suppress(ProcessLookupError):
                self.keeper.terminate()
            self.keeper.wait()


def start_kept(data_dir: Path | None, *, owner_pid: int) -> KeptServer:
    """Start the server of ``data_dir`` and have it stopped when process ``owner_pid`` ends.

    Args:
        data_dir: the data folder; None: a temporary one, fast and removed at the end.

    Raises:
        EmbeddedServerError: the server cannot be started.
    """
    arguments = [sys.executable, "-m", MODULE, str(owner_pid), *([str(data_dir)] if data_dir else [])]
    # A log of a terminal that went away must not kill the keeper, so only its one line of report is a pipe.
    keeper = subprocess.Popen(
        arguments,
        cwd=PROJECT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert keeper.stdout is not None
    with keeper.stdout as report:
        line = report.readline()
    if not line:
        raise EmbeddedServerError(f"the keeper of the server ended at once (exit code {keeper.wait()})")
    said = json.loads(line)
    if "error" in said:
        keeper.wait()
        raise EmbeddedServerError(said["error"])
    if not said["started_now"]:
        keeper.wait()
    return KeptServer(url=said["url"], data_dir=Path(said["data_dir"]), keeper=keeper if said["started_now"] else None)


@contextlib.contextmanager
def kept_server(data_dir: Path | None) -> Iterator[KeptServer]:
    """Have the server of ``data_dir`` (None: a temporary one) for the length of the block, or of this process."""
    kept = start_kept(data_dir, owner_pid=os.getpid())
    try:
        yield kept
    finally:
        kept.stop()


def main(arguments: list[str]) -> int:
    """Be the keeper: ``OWNER_PID [DATA_DIR]``; one line of JSON on standard output says how it went."""
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, _leave)
    owner_pid = int(arguments[0])
    temporary = None if len(arguments) > 1 else _temporary_folder()
    data_dir = temporary or Path(arguments[1])
    place = Place.below(data_dir)
    started_now = False
    try:
        running = start(place, durable=temporary is None, dies_with_caller=True)
        started_now = running.started_now
        _report({"url": running.url, "data_dir": str(data_dir), "started_now": started_now})
        if started_now:
            wait_for_end([owner_pid, running.pid])
    except EmbeddedServerError as error:
        _report({"error": str(error)})
        return 1
    finally:
        for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        if started_now:
            stop(place)
        if temporary is not None:
            _remove(place, temporary)
    return 0


def _leave(signum: int, frame: object) -> None:
    sys.exit(0)


def _report(said: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        # The reader sees the end of the report although the keeper lives on.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _temporary_folder() -> Path:
    """Make a temporary folder that the server's account can enter, also where root's own temporary folder is private."""
    folder = Path(tempfile.mkdtemp(prefix="cardpicker-"))
    account = server_account(folder / "data")
    if account.dropped:
        folder.chmod(0o711)
        if not can_enter(folder, account):
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix="cardpicker-", dir="/tmp"))
            folder.chmod(0o711)
    return folder


def _remove(place: Place, temporary: Path) -> None:
    """Remove a temporary folder, and what its server keeps elsewhere."""
    if place.data.is_symlink():
        shutil.rmtree(Path(os.readlink(place.data)).parent, ignore_errors=True)
    shutil.rmtree(temporary, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
