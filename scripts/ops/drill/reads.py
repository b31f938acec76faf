"""How often each image file was read, as the kernel saw it: also by a process that died before it could say so."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections import Counter
from pathlib import Path

_CLOSE_NOWRITE = 0x10
_ISDIR = 0x40000000
_QUEUE_OVERFLOW = 0x4000
_HEADER = struct.Struct("iIII")
_BUFFER_BYTES = 65536


class ReadCounter:
    """Counts the reads of the files in one folder. Linux only; elsewhere it counts none."""

    def __init__(self, folder: Path) -> None:
        self._counts: Counter[str] = Counter()
        self._queue = -1
        if sys.platform == "linux":
            libc = ctypes.CDLL(None, use_errno=True)
            self._queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if self._queue < 0 or libc.inotify_add_watch(self._queue, os.fsencode(folder), _CLOSE_NOWRITE) < 0:
                raise OSError(ctypes.get_errno(), "the image folder cannot be watched", str(folder))

    def take(self) -> Counter[str]:
        """Return the reads by file name since the last call."""
        while self._queue >= 0:
            try:
                data = os.read(self._queue, _BUFFER_BYTES)
            except BlockingIOError:
                break
            self._count(data)
        taken, self._counts = self._counts, Counter()
        return taken

    def _count(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            _, mask, _, length = _HEADER.unpack_from(data, at)
            at += _HEADER.size
            name = data[at : at + length].rstrip(b"\0").decode()
            at += length
            if mask & _QUEUE_OVERFLOW:
                raise OverflowError("more reads than the kernel kept count of")
            if not mask & _ISDIR:
                self._counts[name] += 1
