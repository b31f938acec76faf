"""The fork server of this process: one that is ours, with native threads pinned before it loads anything."""

from __future__ import annotations

import os
from multiprocessing import forkserver

PINNED = f"{__package__}.pinned"


def ensure_own_fork_server(preload: tuple[str, ...]) -> None:
    """Start the fork server unless it runs; ``preload`` counts only for the one that this call starts."""
    forkserver.set_forkserver_preload([PINNED, *preload])
    try:
        forkserver.ensure_running()
    except ChildProcessError:
        # This process was forked from one that has a fork server, or someone reaped ours: the record is of no use.
        server = forkserver._forkserver
        os.close(server._forkserver_alive_fd)  # type: ignore[attr-defined]
        server._forkserver_pid = None  # type: ignore[attr-defined]
        forkserver.ensure_running()
