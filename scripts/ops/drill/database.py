"""The drill's own PostgreSQL: an embedded server that may be stopped, killed and started while everything else runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path

from scripts.ops.embedded.account import can_enter, server_account
from scripts.ops.embedded.place import Place
from scripts.ops.embedded.processes import wait_for_end
from scripts.ops.embedded.server import start, status, stop

KILL_PATIENCE_S = 10.0


class DrillDatabase:
    """One embedded server on data of its own, durable, so that a killed one loses nothing that was committed."""

    def __init__(self, folder: Path) -> None:
        self.place = Place.below(folder)

    def start(self) -> None:
        """Start the server unless it runs. It ends with this process; call it in the main thread."""
        start(self.place, dies_with_caller=True)

    def stop(self) -> None:
        """Stop the server as an operator does: sessions are ended, data is written out."""
        running = status(self.place)
        stop(self.place)
        if running is not None:
            _reap(running.pid)

    def kill(self) -> None:
        """Kill the server's main process; its sessions learn of it by themselves."""
        running = status(self.place)
        if running is not None:
            os.kill(running.pid, signal.SIGKILL)
            wait_for_end([running.pid], KILL_PATIENCE_S)
            _reap(running.pid)

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        if self.place.data.is_symlink():
            shutil.rmtree(Path(os.readlink(self.place.data)).parent, ignore_errors=True)


def make_folder() -> Path:
    """Make a temporary folder that the server's account can enter, also where the usual one is private."""
    folder = Path(tempfile.mkdtemp(prefix="cardpicker-drill-"))
    account = server_account(folder / "data")
    if account.dropped:
        folder.chmod(0o711)
        if not can_enter(folder, account):
            folder.rmdir()
            folder = Path(tempfile.mkdtemp(prefix="cardpicker-drill-", dir="/tmp"))
            folder.chmod(0o711)
    return folder


def _reap(pid: int) -> None:
    """Take the exit code of an ended server that this process started."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
