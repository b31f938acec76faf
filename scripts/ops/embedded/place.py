"""The files of one embedded server, below ``<data dir>/postgres``."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.ops.embedded.binaries import PROJECT
from scripts.ops.embedded.errors import EmbeddedServerError

LOCK_TIMEOUT_S = 180.0
LARGEST_LOG_BYTES = 10_000_000


def data_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the project's data folder: ``CARDPICKER_DATA_DIR``, relative to the project, or ``.local``."""
    return (PROJECT / (environ.get("CARDPICKER_DATA_DIR", "").strip() or ".local")).resolve()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one server keeps what it needs."""

    home: Path

    @classmethod
    def below(cls, folder: Path) -> Place:
        """Return the place of the server of the data folder ``folder``."""
        return cls(home=folder.resolve() / "postgres")

    @property
    def data(self) -> Path:
        """PostgreSQL's own data folder; a link when the server's account cannot enter ``home``."""
        return self.home / "data"

    @property
    def url_file(self) -> Path:
        """The URL of the server, there while it is ready."""
        return self.home / "url"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.home / "log"

    def create(self) -> None:
        """Make the folder.

        Raises:
            EmbeddedServerError: the folder cannot be written.
        """
        try:
            self.home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._not_writable(error) from error
        if not os.access(self.home, os.W_OK | os.X_OK):
            raise self._not_writable(PermissionError(f"no right to write {self.home}"))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the place for one start or stop at a time, over all processes.

        Raises:
            EmbeddedServerError: the folder cannot be written, or another start or stop does not end.
        """
        self.create()
        path = self.home / "lock"
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._not_writable(error) from error
        self.give_to_owner(path)
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        try:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise EmbeddedServerError(
                            f"another start or stop holds {path} for {LOCK_TIMEOUT_S:.0f} s: see {self.log}"
                        ) from None
                    time.sleep(0.05)
            yield
        finally:
            os.close(handle)

    def write(self, name: str, text: str) -> None:
        """Write the file ``name`` in one step, readable by its owner only."""
        draft = self.home / f".{name}.{os.getpid()}"
        draft.unlink(missing_ok=True)
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text + "\n")
        self.give_to_owner(draft)
        draft.replace(self.home / name)

    def read(self, name: str) -> str | None:
        """Return the text of the file ``name``, or None when there is none."""
        try:
            return (self.home / name).read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise EmbeddedServerError(f"{self.home / name} cannot be read: {error.strerror}") from error

    def give_to_owner(self, path: Path) -> None:
        """Hand a file made under root to the owner of the folder, who would otherwise be locked out of it."""
        if os.geteuid() == 0:
            owner = self.home.stat()
            os.chown(path, owner.st_uid, owner.st_gid)

    def open_log(self) -> int:
        """Open the log for appending, setting an overlong one aside first."""
        with contextlib.suppress(FileNotFoundError):
            if self.log.stat().st_size > LARGEST_LOG_BYTES:
                self.log.replace(self.log.with_name("log.1"))
        handle = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.give_to_owner(self.log)
        return handle

    def last_words(self, since: int) -> str:
        """Return what the log says about a failed start: its last fatal line written after byte ``since``."""
        with contextlib.suppress(OSError), self.log.open("rb") as file:
            file.seek(since)
            lines = file.read().decode(errors="replace").splitlines()
            telling = [line for line in lines if any(word in line for word in ("FATAL", "PANIC", "ERROR", "error:"))]
            if telling or lines:
                return (telling or lines)[-1].strip()
        return "it said nothing"

    def _not_writable(self, error: OSError) -> EmbeddedServerError:
        return EmbeddedServerError(
            f"{self.home} cannot be written ({error.strerror or error}): run as the account that owns it, or set CARDPICKER_DATA_DIR"
        )
