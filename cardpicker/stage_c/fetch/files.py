"""Images of local folders: bounded in size, inside their folder, and nothing but regular files."""

from __future__ import annotations

import os
import stat
import time
import urllib.parse
from pathlib import Path

from cardpicker.stage_c.fetch.classify import check_body
from cardpicker.stage_c.outcomes import Failed, Fetched, Gone, Unusable, UnusableKind

CHUNK_BYTES = 1_048_576


def read_file(url: str, *, folder: str, max_bytes: int, deadline_s: float) -> Fetched | Gone | Unusable | Failed:
    """Return the bytes of the file that a ``file:`` URL names.

    Args:
        folder: the source's folder; what lies outside of it, links followed, is refused. Empty: any folder.
    """
    path = path_of(url)
    if path is None:
        return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail="not a plain file: URL of this machine")
    if folder and not Path(folder).is_dir():
        return Failed(detail="the source's folder is not there: mount it, or correct the source's location")
    if folder and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=f"{path.name!r} lies outside of its source's folder")
    try:
        return _read(path, max_bytes, time.monotonic() + deadline_s)
    except (FileNotFoundError, NotADirectoryError):
        return Gone(detail=f"no file {path.name!r}")
    except PermissionError:
        return Gone(detail=f"no permission to read {path.name!r}")
    except OSError as error:
        return Failed(detail=f"{path.name!r}: {error.strerror or type(error).__name__}")


def path_of(url: str) -> Path | None:
    """Return the absolute path in a ``file:`` URL, None when it names another machine or no possible path."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return None
    # A ? or # that a file's name holds is quoted by whoever makes the URL.
    path = urllib.parse.unquote(parts.path, errors="surrogateescape")
    if parts.netloc not in ("", "localhost") or not path.startswith("/") or "\0" in path:
        return None
    return Path(path)


def _read(path: Path, max_bytes: int, ends_at: float) -> Fetched | Unusable | Failed:
    # O_NONBLOCK: opening a pipe must not wait for whoever might write to it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb", buffering=0) as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=f"{path.name!r} is not a regular file")
        chunks: list[bytes] = []
        received = 0
        while received <= max_bytes and (chunk := file.read(CHUNK_BYTES)):
            chunks.append(chunk)
            received += len(chunk)
            if time.monotonic() > ends_at:
                return Failed(detail=f"{path.name!r} did not arrive in time")
    if received > max_bytes:
        detail = f"{path.name!r} has {status.st_size:,} bytes, more than {max_bytes:,} (STAGE_C_FETCH_MAX_BYTES)"
        return Unusable(kind=UnusableKind.TOO_MANY_BYTES, detail=detail)
    return check_body(b"".join(chunks), repr(path.name))
