"""The quickstart: a database, the sample catalog, real workers, a table of what they found, and the site.

Run by scripts/ops/quickstart.sh in the project's environment. Everything it starts ends with it, however it ends.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import http.client
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.ops.embedded.errors import EmbeddedServerError
from scripts.ops.embedded.keeper import kept_server
from scripts.ops.embedded.place import data_dir
from scripts.ops.supervise import Supervised, tail

PROJECT = Path(__file__).resolve().parents[2]
SAMPLE = PROJECT / "sample_catalogue"
ADMIN = "admin"
OTHER_PASSWORD = 7
UNSETTLED = (3, 5)  #: Dispatch is halted; the patience is over.
LOAD_CEILING = "64"
WEB_TIMEOUT_S = 60.0
LINES_OF_A_FAILURE = 15


class QuickstartError(Exception):
    """The quickstart cannot go on; the message says why and where to look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where this quickstart keeps things and how its programs are run."""

    data: Path
    environment: dict[str, str]

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.data / "logs"

    def manage(self, *arguments: str, shown: bool = False, **extra: str) -> int:
        """Run a management command and return its exit code; its output is logged.

        Args:
            shown: print its standard output as it comes.
            extra: variables for its environment.

        Raises:
            QuickstartError: it failed in a way that no caller expects.
        """
        log = self.logs / "quickstart.log"
        with log.open("ab") as output:
            output.write(f"$ manage.py {' '.join(arguments)}\n".encode())
            output.flush()
            begin = output.tell()
            process = subprocess.Popen(
                [sys.executable, str(PROJECT / "manage.py"), *arguments],
                cwd=PROJECT,
                env=self.environment | extra,
                stdin=subprocess.DEVNULL,
                stdout=None if shown else output,
                stderr=output,
                start_new_session=True,
            )
        try:
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            raise
        expected = (0, *UNSETTLED) if shown else (0, OTHER_PASSWORD)
        if code not in expected:
            raise QuickstartError(f"manage.py {arguments[0]} failed:\n{tail(log, begin, LINES_OF_A_FAILURE)}")
        return code


def main(arguments: list[str]) -> int:
    """Run the quickstart; return 0, or 1 when something failed or a card is unsettled."""
    parser = argparse.ArgumentParser(
        prog="scripts/ops/quickstart.sh",
        description="Start a database, load the sample catalog, identify its cards with real workers, show what they found"
        " and serve the site until Ctrl-C. Running it again is safe and keeps all data.",
    )
    parser.add_argument("--once", action="store_true", help="end after the table: exit 0, or 1 if a card is unsettled")
    parser.add_argument(
        "--wait", type=float, default=300, metavar="SECONDS", help="patience for the cards (default 300)"
    )
    options = parser.parse_args(arguments)
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, lambda signum, frame: sys.exit(128 + signum))
    try:
        with only_one(data_dir()):
            return run(options.once, options.wait)
    except (QuickstartError, EmbeddedServerError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run(once: bool, patience_s: float) -> int:
    """Do it all, in order; what was started is stopped on the way out, in reverse."""
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        stack.callback(_say_stopped)
        site = _site()
        with step("Database"):
            place = "the server of CARDPICKER_DATABASE_URL"
            if not os.environ.get("CARDPICKER_DATABASE_URL"):
                url = stack.enter_context(kept_server(site.data)).url
                place = f"embedded PostgreSQL on {url.rsplit('@', 1)[1].split('/')[0]}"
        print(f"  {place}")
        with step("Tables"):
            site.manage("migrate", "--no-input", "--verbosity", "0")
        with step("Sample printings"):
            site.manage("import_canonical_card_data", "--from", str(next(SAMPLE.glob("printings.jsonl*"))))
        password = _password(site)
        with step("Admin's account"):
            code = site.manage("ensure_admin", "--username", ADMIN, DJANGO_SUPERUSER_PASSWORD=password)
        login = f"{ADMIN}, password {password}" if code == 0 else f"{ADMIN}, with the password that you set"
        with step("Workers and web server"):
            programs, address = _start_programs(site, stack)
        with step("Sample cards"):
            site.manage("update_database", "--add-folder", str(SAMPLE / "images"))
        print("Identifying the sample cards.", flush=True)
        code = site.manage(
            "quickstart_report", "--folder", str(SAMPLE / "images"), "--wait", str(patience_s), shown=True
        )
        if code != 0:
            print(f"Logs: {site.logs}", file=sys.stderr)
        print(f"Admin: {address}/admin/  login {login}")
        print(f"Took {time.monotonic() - began:.0f} s.", flush=True)
        if not once:
            _serve(programs)
        return int(code != 0)


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Refuse a second quickstart on the same data folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "quickstart.lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise QuickstartError(
            f"{folder} cannot be written ({error.strerror}): run as the account that owns it."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise QuickstartError(
                f"A quickstart runs here already (process {lock.read().strip()}); stop it first."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


@contextlib.contextmanager
def step(name: str) -> Iterator[None]:
    """Show a step and how long it took."""
    print(f"{name} … ", end="", flush=True)
    began = time.monotonic()
    try:
        yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.monotonic() - began:.1f} s", flush=True)


def _site() -> Site:
    folder = data_dir()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    # A newcomer's machine may be busy with other things, and two dozen cards do not add to that for long.
    environment = {"STAGE_E_HOST_LOAD_CEILING": LOAD_CEILING} | os.environ
    environment |= {
        "CARDPICKER_DATA_DIR": str(folder),
        "STAGE_E_STREAMING_ENABLED": "1",
        "PYTHONUNBUFFERED": "1",
    }
    return Site(data=folder, environment=environment)


def _password(site: Site) -> str:
    """Return the admin's password, kept in a file that only its owner reads."""
    file = site.data / "admin-password"
    if not file.exists():
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as written:
            written.write(secrets.token_urlsafe(12) + "\n")
    return file.read_text(encoding="utf-8").strip()


def _start_programs(site: Site, stack: contextlib.ExitStack) -> tuple[list[Supervised], str]:
    """Start the workers and the web server, and wait until the site answers."""
    port = _free_port(site.data / "web-port")
    manage = [sys.executable, str(PROJECT / "manage.py")]
    serve = [sys.executable, "-m", "waitress", f"--listen=127.0.0.1:{port}", "--threads=4", "config.wsgi:application"]
    programs: list[Supervised] = []
    stack.callback(_stop, programs)
    for name, command in (("workers", [*manage, "qcluster"]), ("web", serve)):
        programs.append(Supervised(command, environment=site.environment, log=site.logs / f"{name}.log"))
    deadline = time.monotonic() + WEB_TIMEOUT_S
    while not _answers(port):
        _require_running(programs)
        if time.monotonic() > deadline:
            raise QuickstartError(
                f"The web server does not answer after {WEB_TIMEOUT_S:.0f} s: see {site.logs / 'web.log'}"
            )
        time.sleep(0.1)
    return programs, f"http://127.0.0.1:{port}"


def _free_port(file: Path) -> int:
    """Return the port of the last time if it is free, else one that the system picks, and remember it."""
    remembered = file.read_text(encoding="utf-8").strip() if file.exists() else ""
    for port in (int(remembered) if remembered.isdigit() else 0, 0):
        with socket.socket() as probe, contextlib.suppress(OSError, OverflowError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            found = int(probe.getsockname()[1])
            file.write_text(f"{found}\n", encoding="utf-8")
            return found
    raise QuickstartError("There is no free port on 127.0.0.1.")


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/admin/login/")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()


def _require_running(programs: list[Supervised]) -> None:
    for program in programs:
        if program.ended:
            last = tail(program.log, program.begin, LINES_OF_A_FAILURE)
            raise QuickstartError(f"A program ended by itself; {program.log} ends with:\n{last}")


def _serve(programs: list[Supervised]) -> None:
    """Serve until Ctrl-C, or until a program ends by itself."""
    print("Serving. Ctrl-C stops everything that was started here.", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            _require_running(programs)
            time.sleep(1)


def _stop(programs: list[Supervised]) -> None:
    """Ask all programs to stop, then wait for them; Ctrl-C no longer interrupts."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    print("Stopping …", flush=True)
    for program in programs:
        program.ask_to_stop()
    for program in programs:
        program.wait()


def _say_stopped() -> None:
    print("Stopped what was started; the data stays.", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
