"""The inside of a compute process: cut off from its parent's sockets, one item at a time, gone with its owner."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import stat
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

from .types import describe

NATIVE_THREAD_LIMITS = ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_PR_SET_PDEATHSIG = 1
_HEADER = struct.Struct("!Q")


def work(
    channel: socket.socket,
    lifeline: socket.socket,
    compute: Callable[[bytes, Any], Any],
    initializer: Callable[..., None] | None,
    initargs: tuple[Any, ...],
) -> None:
    """Run in a compute process: make ready, then answer one item at a time until the channel closes."""
    _stage_c_compute_worker_init(channel, lifeline)
    try:
        if initializer is not None:
            initializer(*initargs)
    except Exception as error:
        send(channel, ("init-failed", describe(error), 0.0))
        return
    send(channel, ("ready", None, 0.0))
    while True:
        try:
            body, context = receive(channel)
        except (EOFError, OSError):
            return
        try:
            answer = pickle.dumps(("computed", compute(body, context), _rss_mb()))
        except Exception as error:
            # Only plain text crosses back: an exception object may not unpickle on the other side.
            answer = pickle.dumps(("failed", describe(error), _rss_mb()))
        send_frame(channel, answer)


def _stage_c_compute_worker_init(channel: socket.socket, lifeline: socket.socket) -> None:
    """Cut a compute process off: no inherited socket or connection, default signals, one native thread, no orphan."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for variable in NATIVE_THREAD_LIMITS:
        os.environ[variable] = "1"
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The death signal is tied to a thread and misses an owner that is gone already; the end of the lifeline is not.
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True, name="lifeline").start()
    _drop_inherited_connections()
    _close_sockets(keep={0, 1, 2, channel.fileno(), lifeline.fileno()})


def _end_with(lifeline: socket.socket) -> None:
    with contextlib.suppress(OSError):
        lifeline.recv(1)
    os._exit(1)


def _drop_inherited_connections() -> None:
    """Forget a forked parent's database connections; closing one would end the parent's session."""
    database = sys.modules.get("django.db")
    if database is not None:
        for connection in database.connections.all(initialized_only=True):
            connection.connection = None


def _close_sockets(keep: set[int]) -> None:
    """Close inherited sockets by descriptor, which says nothing to their other end."""
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for name in os.listdir(folder):
        descriptor = int(name)
        if descriptor in keep:
            continue
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                os.close(descriptor)


def _rss_mb() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


def send(channel: socket.socket, message: Any) -> None:
    send_frame(channel, pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))


def send_frame(channel: socket.socket, frame: bytes) -> None:
    channel.sendall(_HEADER.pack(len(frame)))
    channel.sendall(frame)


def receive(channel: socket.socket) -> Any:
    (length,) = _HEADER.unpack(_receive_exactly(channel, _HEADER.size))
    return pickle.loads(_receive_exactly(channel, length))


def _receive_exactly(channel: socket.socket, length: int) -> bytearray:
    received = bytearray(length)
    view = memoryview(received)
    while view:
        count = channel.recv_into(view)
        if count == 0:
            raise EOFError("the other side closed the channel")
        view = view[count:]
    return received
