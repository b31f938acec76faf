"""Which account the server runs as, and what that account can reach.

PostgreSQL refuses to run as root. Under root the server is started as the owner of its data, or as ``postgres`` or ``nobody``.
"""

from __future__ import annotations

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from scripts.ops.embedded.errors import EmbeddedServerError

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account that the server's processes run as."""

    uid: int
    gid: int
    dropped: bool  #: Whether the caller is root and hands its rights away.

    @property
    def user(self) -> int | None:
        """``subprocess``'s argument ``user``."""
        return self.uid if self.dropped else None

    @property
    def group(self) -> int | None:
        """``subprocess``'s argument ``group``."""
        return self.gid if self.dropped else None

    @property
    def extra_groups(self) -> list[int] | None:
        """``subprocess``'s argument ``extra_groups``: none of the caller's."""
        return [] if self.dropped else None

    def own(self, path: Path) -> None:
        """Give ``path`` and all below it to this account."""
        if not self.dropped:
            return
        for item in (path, *path.rglob("*")):
            os.chown(item, self.uid, self.gid, follow_symlinks=False)


def server_account(data: Path) -> Account:
    """Choose the account for a server on ``data``: the caller, unless that is root.

    Raises:
        EmbeddedServerError: the caller is root and no account to drop to exists, or another account owns the data.
    """
    owner = data.stat().st_uid if data.exists() else None
    if os.geteuid() != 0:
        if owner not in (None, os.geteuid()):
            raise EmbeddedServerError(
                f"the data in {data} belongs to account {owner}: start the server as that account, or set CARDPICKER_DATA_DIR"
            )
        return Account(uid=os.geteuid(), gid=os.getegid(), dropped=False)
    if owner:
        return Account(uid=owner, gid=data.stat().st_gid, dropped=True)
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(uid=entry.pw_uid, gid=entry.pw_gid, dropped=True)
    raise EmbeddedServerError(
        "PostgreSQL does not run as root and there is neither an account postgres nor nobody: run as an ordinary user,"
        " or set CARDPICKER_DATABASE_URL"
    )


def can_enter(folder: Path, account: Account) -> bool:
    """Tell whether ``account`` can pass through ``folder`` and every folder above it, by their modes."""
    folder = folder.resolve()
    return all(_allows(path, account, stat.S_IXOTH) for path in (folder, *folder.parents))


def can_read_tree(folder: Path, account: Account) -> bool:
    """Tell whether ``account`` can read all of ``folder``, by the modes of its files."""
    if not can_enter(folder, account):
        return False
    return all(_allows(path, account, stat.S_IROTH) for path in folder.resolve().rglob("*"))


def _allows(path: Path, account: Account, other_bit: int) -> bool:
    status = path.stat()
    if status.st_uid == account.uid:
        return bool(status.st_mode & other_bit << 6)
    if status.st_gid == account.gid:
        return bool(status.st_mode & other_bit << 3)
    return bool(status.st_mode & other_bit)
