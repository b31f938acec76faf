"""Create ``.venv`` and install a requirements file into it, once: again only when that file changes.

Run by any Python from 3.11, standard library only. Several at once are safe.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
VENV = PROJECT / ".venv"
PYTHON = VENV / "bin" / "python"


class VenvError(Exception):
    """The environment cannot be made; the message says what to do."""


def main(arguments: list[str]) -> int:
    """Make the environment fit the requirements file named on the command line."""
    requirements = PROJECT / arguments[0]
    try:
        if not _is_fitting(requirements):
            _make(requirements)
    except VenvError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def fingerprint(requirements: Path) -> str:
    """Return a hash over ``requirements`` and the files it includes."""
    digest = hashlib.sha256()
    for path in (requirements, *_included(requirements)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _included(requirements: Path) -> list[Path]:
    found = re.findall(r"^-r\s+(\S+)", requirements.read_text(encoding="utf-8"), re.MULTILINE)
    return [requirements.parent / name for name in found]


def _stamp(requirements: Path) -> Path:
    return VENV / f".installed-{requirements.stem}"


def _is_fitting(requirements: Path) -> bool:
    stamp = _stamp(requirements)
    return _python_works() and stamp.exists() and stamp.read_text(encoding="utf-8") == fingerprint(requirements)


def _python_works() -> bool:
    """Tell whether the environment runs at all; it does not after its Python was removed or its folder was moved."""
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([PYTHON, "-c", check], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _make(requirements: Path) -> None:
    local = PROJECT / ".local"
    try:
        local.mkdir(exist_ok=True)
        lock = (local / "venv.lock").open("w", encoding="utf-8")
    except OSError as error:
        raise VenvError(
            f"{PROJECT} cannot be written ({error.strerror}) and its environment does not fit {requirements.name}:"
            " run as the account that owns it, or clone the project for yourself."
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_fitting(requirements):
            return
        began = time.monotonic()
        if not _python_works():
            _create()
        print(f"Installing {requirements.name} into .venv; about half a minute the first time.", flush=True)
        _install(requirements)
        print(f"Installed in {time.monotonic() - began:.0f} s.", flush=True)


def _create() -> None:
    missing = [name for name in ("venv", "ensurepip") if not _has_module(name)]
    if missing:
        raise VenvError(
            f"This Python ({sys.executable}) lacks the module {missing[0]}: install it (Debian and Ubuntu: apt install python3-venv),"
            " or set PYTHON to another Python from 3.11."
        )
    print(f"Creating .venv with Python {sys.version.split()[0]}.", flush=True)
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        said = (made.stdout + made.stderr).strip().splitlines() or ["no reason given"]
        raise VenvError(f".venv could not be created: {said[-1]}")


def _has_module(name: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0


def _install(requirements: Path) -> None:
    command: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "-qq",
        "--disable-pip-version-check",
        "-r",
        requirements,
    ]
    installed = subprocess.run(command, cwd=PROJECT, check=False)
    if installed.returncode != 0:
        raise VenvError(
            f"pip could not install {requirements.name}; its reason stands above. Without a direct connection set HTTPS_PROXY,"
            " then run this again."
        )
    for stamp in {_stamp(requirements), *map(_stamp, _included(requirements))}:
        stamp.write_text(fingerprint(PROJECT / f"{stamp.name.removeprefix('.installed-')}.txt"), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
