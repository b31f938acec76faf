"""A data folder that a server can be started on: made when there is none, and opened by the right account and programs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from scripts.ops.embedded.account import Account, can_enter, can_read_tree, server_account
from scripts.ops.embedded.binaries import ServerFolder, copy_server, find_server
from scripts.ops.embedded.errors import EmbeddedServerError
from scripts.ops.embedded.place import Place

NAME = "cardpicker"  #: The superuser and the database.
ELSEWHERE = Path("/var/lib/cardpicker")
INIT_TIMEOUT_S = 120
LAST_MAJOR_WITHOUT_BUILTIN_LOCALE = 16
#: Nothing of the caller's environment reaches the server: a stray PGDATA or PGPORT would move it.
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}
HOST_RULES = "host all all 127.0.0.1/32 scram-sha-256\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A data folder with the programs and the account that serve it."""

    data: Path
    server: ServerFolder
    account: Account


def open_cluster(place: Place, *, durable: bool) -> Cluster:
    """Return the cluster of ``place``, making its data folder when there is none. The caller holds the place's lock.

    Args:
        durable: whether the files of a new data folder are flushed to disk.

    Raises:
        EmbeddedServerError: no programs, no account, or PostgreSQL refused; the message says which.
    """
    account = server_account(place.data)
    reachable = not account.dropped or can_enter(place.home, account)
    base = place.home if reachable else _place_elsewhere(place)
    server = find_server(_data_version(place.data))
    if account.dropped and not all(can_read_tree(folder, account) for folder in server.folders):
        server = copy_server(server, base)
    if not (place.data / "PG_VERSION").exists():
        _make_data(place, base, Cluster(data=base / "data.new", server=server, account=account), durable=durable)
    cluster = Cluster(data=place.data.resolve(), server=server, account=account)
    if place.read("password") is None:
        _set_password(place, cluster)
    return cluster


def _place_elsewhere(place: Place) -> Path:
    """Return a folder that the server's account can enter, for a project that only root can."""
    if place.data.is_symlink():
        return Path(os.readlink(place.data)).parent
    base = ELSEWHERE / hashlib.sha256(str(place.home).encode()).hexdigest()[:12]
    base.mkdir(parents=True, exist_ok=True)
    return base


def _data_version(data: Path) -> int | None:
    try:
        return int((data / "PG_VERSION").read_text().strip())
    except FileNotFoundError:
        return None


def _make_data(place: Place, base: Path, draft: Cluster, *, durable: bool) -> None:
    """Make the data folder under another name and rename it when it is complete: an interrupted start leaves no half of one."""
    if place.data.is_dir() and any(place.data.iterdir()):
        raise EmbeddedServerError(f"{place.data} is not empty and not a PostgreSQL data folder: move it away")
    shutil.rmtree(draft.data, ignore_errors=True)
    draft.data.mkdir(mode=0o700)
    draft.account.own(draft.data)
    command: list[str | Path] = [
        draft.server.initdb,
        "--pgdata",
        draft.data,
        "--username",
        NAME,
        "--auth=trust",
        "--encoding=UTF8",
    ]
    command += ["--locale=C"]
    if draft.server.major > LAST_MAJOR_WITHOUT_BUILTIN_LOCALE:
        # Plain C would leave upper() and lower() blind to accents, which Django's case-insensitive search relies on.
        command += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not durable:
        command += ["--no-sync"]
    _run(place, draft.account, command)
    (draft.data / "pg_hba.conf").write_text(HOST_RULES, encoding="utf-8")
    (place.home / "password").unlink(missing_ok=True)
    _set_password(place, draft, f"CREATE DATABASE {NAME}")
    final = base / "data"
    with contextlib.suppress(FileNotFoundError):
        final.rmdir()
    draft.data.rename(final)
    if final != place.data and not place.data.is_symlink():
        place.data.symlink_to(final)


def _set_password(place: Place, cluster: Cluster, *more: str) -> None:
    """Give the superuser a new password, with the server down; ``more`` statements run in the same session."""
    password = secrets.token_hex(20)
    statements = "\n".join((f"ALTER ROLE {NAME} PASSWORD '{password}'", *more, ""))
    command: list[str | Path] = [
        cluster.server.postgres,
        "--single",
        "-D",
        cluster.data,
        "-c",
        "log_statement=none",
        "postgres",
    ]
    _run(place, cluster.account, command, statements)
    place.write("password", password)


def _run(place: Place, account: Account, command: list[str | Path], statements: str = "") -> None:
    """Run one of the server's programs to its end, its words going to the log.

    Raises:
        EmbeddedServerError: it failed; the message carries its last words.
    """
    log = place.open_log()
    begin = os.fstat(log).st_size
    try:
        ended = subprocess.run(
            command,
            check=False,
            input=statements.encode(),
            stdout=log,
            stderr=log,
            cwd="/",
            env=ENVIRONMENT,
            timeout=INIT_TIMEOUT_S,
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EmbeddedServerError(f"PostgreSQL could not be prepared: {error}") from error
    finally:
        os.close(log)
    with place.log.open("rb") as written:
        written.seek(begin)
        complained = any(line.lstrip().startswith((b"ERROR", b"FATAL")) or b" ERROR: " in line for line in written)
    if ended.returncode != 0 or complained:
        raise EmbeddedServerError(f"PostgreSQL could not be prepared: {place.last_words(begin)} (see {place.log})")
