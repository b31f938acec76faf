"""Who is who among a cluster's processes. Nothing says it, so it is told by who started whom."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

import psutil


def alive(process: psutil.Process) -> bool:
    """Whether a process runs; one that nobody has reaped yet does not."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def members(sessions: Iterable[int]) -> list[psutil.Process]:
    """Return the living processes of the given sessions, whoever their parents are."""
    wanted = set(sessions)
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) in wanted and alive(process):
                found.append(process)
    return found


def orphans(main_pid: int, sessions: Iterable[int]) -> list[psutil.Process]:
    """Return the living processes of the drill's sessions that no living cluster is responsible for."""
    with contextlib.suppress(psutil.Error):
        main = psutil.Process(main_pid)
        family = {main.pid, *(child.pid for child in main.children(recursive=True))} if alive(main) else set()
        return [process for process in members(sessions) if process.pid not in family]
    return members(sessions)


def sentinel_of(main_pid: int) -> psutil.Process | None:
    """Return the process that guards the workers: the main process's only child of its own kind."""
    return next(_children(main_pid, forked=True), None)


def workers_of(main_pid: int, busy: Iterable[int]) -> tuple[list[psutil.Process], list[psutil.Process]]:
    """Return the busy workers and the sentinel's other children: idle workers, the pusher and the monitor."""
    sentinel = sentinel_of(main_pid)
    children = list(_children(sentinel.pid, forked=True)) if sentinel is not None else []
    owners = set(busy)
    return [p for p in children if p.pid in owners], [p for p in children if p.pid not in owners]


def fork_server_of(worker_pid: int) -> psutil.Process | None:
    """Return the fork server of a worker, if it has started one."""
    return next((p for p in _children(worker_pid) if "forkserver" in " ".join(_command(p))), None)


def pool_children_of(worker_pid: int) -> list[psutil.Process]:
    """Return the compute processes of a worker."""
    server = fork_server_of(worker_pid)
    return list(_children(server.pid)) if server is not None else []


def local_ports(pid: int) -> set[int]:
    """Return the local ports of a process's connections, by which a server knows its sessions."""
    with contextlib.suppress(psutil.Error):
        return {connection.laddr.port for connection in psutil.Process(pid).net_connections("tcp") if connection.laddr}
    return set()


def _children(pid: int, *, forked: bool = False) -> Iterator[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        parent = psutil.Process(pid)
        for child in parent.children():
            if alive(child) and (not forked or _command(child) == _command(parent)):
                yield child


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return list(process.cmdline())
    return []
