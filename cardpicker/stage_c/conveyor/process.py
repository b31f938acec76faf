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
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from multiprocessing import forkserver
from typing import Any

from .types import describe

NATIVE_THREAD_LIMITS = ("OMP_THREAD_LIMIT", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_PR_SET_PDEATHSIG = 1
_HEADER = struct.Struct("!Q")
# Loaded here, because a forked child must not load a library: another thread may have held the loader's lock.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class Kind(StrEnum):
    """What an answer is about."""

    READY = "ready"
    INIT_FAILED = "init-failed"
    COMPUTED = "computed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a compute process says to its owner: after its start, and once for each item."""

    kind: Kind
    value: bytes = b""  #: The pickled result; the owner unpickles it apart, since a value may refuse.
    detail: str = ""
    compute_s: float = 0.0
    has_outgrown: bool = False  #: Whether the process takes more memory than it may.


def work(channel: socket.socket, lifeline: socket.socket, task: bytes, memory_mb: int, niceness: int) -> None:
    """Run in a compute process: make ready, then answer one item at a time until the channel closes.

    Args:
        task: pickled ``(compute, initializer, initargs)``; what they import is loaded after the process is cut off.
        memory_mb: what the process may take; more is told to the owner, which sees to it.
    """
    os.nice(max(0, niceness - os.nice(0)))
    _stage_c_compute_worker_init(channel, lifeline)
    # An owner that is done closes the channel, whatever its processes are about to say.
    with contextlib.suppress(EOFError, OSError):
        _serve(channel, task, memory_mb)


def pin_native_threads() -> None:
    """Limit native libraries that are loaded later to one thread each."""
    for variable in NATIVE_THREAD_LIMITS:
        os.environ[variable] = "1"


def _serve(channel: socket.socket, task: bytes, memory_mb: int) -> None:
    try:
        compute, initializer, initargs = pickle.loads(task)
        if initializer is not None:
            initializer(*initargs)
    except Exception as error:
        send(channel, Answer(kind=Kind.INIT_FAILED, detail=describe(error)))
        return
    send(channel, Answer(kind=Kind.READY))
    while True:
        answer = _answer(compute, receive_frame(channel))
        send(channel, replace(answer, has_outgrown=_takes_more_than(memory_mb)))


def _answer(compute: Callable[[bytes, Any], Any], frame: bytearray) -> Answer:
    started = time.monotonic()
    try:
        body, context = pickle.loads(frame)
        value = pickle.dumps(compute(body, context))
    except Exception as error:
        # Only plain text crosses back: an exception object may not unpickle on the other side.
        elapsed_s = time.monotonic() - started
        return Answer(kind=Kind.FAILED, detail=describe(error), compute_s=elapsed_s)
    elapsed_s = time.monotonic() - started
    return Answer(kind=Kind.COMPUTED, value=value, compute_s=elapsed_s)


def _stage_c_compute_worker_init(channel: socket.socket, lifeline: socket.socket) -> None:
    """Cut a compute process off: no inherited socket or connection, default signals, one native thread, no orphan."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _reset_signals()
    pin_native_threads()
    for ours in (channel, lifeline):
        ours.settimeout(None)  # a default timeout of the parent's would end an idle process
    # The death signal is tied to a thread and misses an owner that is gone already; the end of the lifeline is not.
    threading.Thread(target=_end_with, args=(lifeline,), daemon=True, name="lifeline").start()
    _silence_inherited(keep={0, 1, 2, channel.fileno(), lifeline.fileno()})
    _drop_inherited_connections()


def _reset_signals() -> None:
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _end_with(lifeline: socket.socket) -> None:
    with contextlib.suppress(OSError):
        lifeline.recv(1)
    os._exit(1)


def _silence_inherited(keep: set[int]) -> None:
    """Point inherited sockets and pipes at the null device, which says nothing to their other end.

    Closing them would free their numbers, and an inherited object that is closed later would then close a stranger's.
    A fork server lives until its last pipe does, and its end is what ends a process that is stuck, so its pipes go too;
    under fork a pipe tells the parent that this process lives.
    """
    silenced = (stat.S_ISSOCK, stat.S_ISFIFO) if forkserver.get_inherited_fds() is not None else (stat.S_ISSOCK,)
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    null = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir(folder):
        descriptor = int(name)
        if descriptor in keep:
            continue
        with contextlib.suppress(OSError):
            mode = os.fstat(descriptor).st_mode
            if any(is_kind(mode) for is_kind in silenced):
                os.dup2(null, descriptor, inheritable=False)
    os.close(null)


def _drop_inherited_connections() -> None:
    """Forget a forked parent's database connections; closing one would end the parent's session."""
    database = sys.modules.get("django.db")
    if database is not None:
        for connection in database.connections.all(initialized_only=True):
            connection.connection = None


def _takes_more_than(memory_mb: int) -> bool:
    """Whether this process takes more memory, the pages that it shares with a forked parent by their share.

    To count shares takes the kernel milliseconds. They add up to no more than what is resident, which it knows, so they
    are counted only where that is too much.
    """
    if _resident_mb() <= memory_mb:
        return False
    with contextlib.suppress(OSError), open("/proc/self/smaps_rollup", encoding="ascii") as rollup:
        for line in rollup:
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024 > memory_mb
    return True


def _resident_mb() -> float:
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


def send(channel: socket.socket, message: Any) -> None:
    frame = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    channel.sendall(_HEADER.pack(len(frame)))
    channel.sendall(frame)


def receive_frame(channel: socket.socket) -> bytearray:
    (length,) = _HEADER.unpack(_receive_exactly(channel, _HEADER.size))
    return _receive_exactly(channel, length)


def _receive_exactly(channel: socket.socket, length: int) -> bytearray:
    received = bytearray(length)
    view = memoryview(received)
    while view:
        count = channel.recv_into(view)
        if count == 0:
            raise EOFError("the other side closed the channel")
        view = view[count:]
    return received
