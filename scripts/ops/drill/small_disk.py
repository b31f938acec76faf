"""A disk of the drill's own for its database, small enough to be filled: a tmpfs in a mount namespace of this process.

Whoever this process starts sees it, nobody else does, and it is gone with the last of them, however they end. Linux, root.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from pathlib import Path

SIZE_MB = 1500
_CLONE_NEWNS = 0x20000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_MNT_DETACH = 2
_CHUNK = bytes(1 << 20)


class SmallDisk:
    """A mounted disk, full or not."""

    def __init__(self, folder: Path) -> None:
        """Mount it on ``folder``, which is made.

        Raises:
            OSError: this process may not mount.
        """
        folder.mkdir(parents=True, exist_ok=True)
        _mount(folder)
        self._folder = folder
        self._ballast = folder / "ballast"

    def fill(self) -> None:
        """Write until nothing more goes in."""
        with self._ballast.open("wb", buffering=0) as ballast:
            for chunk in (_CHUNK, _CHUNK[:4096]):
                with contextlib.suppress(OSError):
                    while ballast.write(chunk) == len(chunk):
                        pass

    def clear(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def remove(self) -> None:
        """Take it out, so that the folder can be deleted; whoever uses it still does so to the end."""
        ctypes.CDLL(None).umount2(os.fsencode(self._folder), _MNT_DETACH)


def why_not() -> str:
    """Return why no small disk can be mounted here; empty when one can."""
    if sys.platform != "linux":
        return "mount namespaces are Linux's"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # Its namespace ends with it.
        try:
            _mount(Path("/tmp"))
        except OSError as error:
            os.write(writer, f"it cannot be mounted: {error.strerror}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        said = answer.read().decode()
    os.waitpid(child, 0)
    return said


def _mount(folder: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={SIZE_MB}m,mode=755".encode()
    # Each only if the one before it went well: without a namespace of its own the mount would be everybody's.
    is_done = (
        libc.unshare(_CLONE_NEWNS) == 0
        and libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None) == 0
        and libc.mount(b"drill", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0), options) == 0
    )
    if not is_done:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(folder))
