"""The C library's allocator of the owning process, kept to one heap for all of its threads."""

from __future__ import annotations

import ctypes
import sys

_M_ARENA_MAX = -8  #: From glibc's malloc.h.


def share_one_heap() -> None:
    """Have later threads allocate from the main heap, where the C library lets that be set.

    By default each fetch thread has a heap of its own, and the threads of every run share out anew who has which: each
    heap grows to the largest items that it ever held, and keeps that. Threads that hold Python's lock lose no time.
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
        if mallopt is not None:
            mallopt(_M_ARENA_MAX, 1)
