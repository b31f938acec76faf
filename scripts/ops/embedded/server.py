"""Start, stop and look at the embedded PostgreSQL of one place.

Loopback only, on a free port that is remembered. Any number of processes may start it at once: one does, all get the URL.
Data is never deleted; what a killed server leaves behind is cleared so that PostgreSQL's own recovery can run.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass

from scripts.ops.embedded.cluster import ENVIRONMENT, NAME, Cluster, open_cluster
from scripts.ops.embedded.errors import EmbeddedServerError
from scripts.ops.embedded.place import Place
from scripts.ops.embedded.processes import end_with_parent, is_alive, processes_in, wait_for_end, was_started_with

HOST = "127.0.0.1"
START_TIMEOUT_S = 150.0
ORPHAN_PATIENCE_S = 5.0
PORT_ATTEMPTS = 5
OPTIONS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "100",
    "client_connection_check_interval": "10s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "log_line_prefix": "%m [%p] ",
}
#: For data that is thrown away: nothing is flushed, so a power cut would lose it.
EPHEMERAL_OPTIONS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that accepts connections."""

    url: str
    pid: int
    port: int
    started_now: bool


def start(place: Place, *, durable: bool = True, dies_with_caller: bool = False) -> RunningServer:
    """Start the server of ``place`` unless it runs, and return it when it is ready.

    Args:
        durable: False trades safety against a power cut for speed, for data that is thrown away.
        dies_with_caller: let the kernel stop the server when the calling process ends (Linux).

    Raises:
        EmbeddedServerError: it cannot be started; the message says why and what to do.
    """
    with place.locked():
        running = _wait_for_running(place)
        if running is not None:
            return running
        cluster = open_cluster(place, durable=durable)
        _clear_remains(cluster)
        for _attempt in range(PORT_ATTEMPTS):
            port = _free_port(place.read("port"))
            if _launch(place, cluster, _command(cluster, port, durable), dies_with_caller):
                place.write("port", str(port))
                found = _look(place)
                if found is not None and found.ready:
                    return _announce(place, found, started_now=True)
            (place.home / "port").unlink(missing_ok=True)
    raise EmbeddedServerError(f"no free port found in {PORT_ATTEMPTS} attempts: see {place.log}")


def stop(place: Place) -> bool:
    """Stop the server of ``place``: open sessions are ended, data is written out.

    Returns:
        Whether there was a server to stop.
    """
    if not place.home.exists():
        return False
    with place.locked():
        place.url_file.unlink(missing_ok=True)
        found = _look(place)
        if found is None:
            return False
        for signum, patience_s in ((signal.SIGINT, 60.0), (signal.SIGQUIT, 20.0)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(found.pid, signum)
            if wait_for_end([found.pid], patience_s):
                return True
    raise EmbeddedServerError(f"the server (process {found.pid}) does not stop: see {place.log}")


def status(place: Place) -> RunningServer | None:
    """Return the server of ``place`` if it is ready now."""
    found = _look(place)
    if found is None or not found.ready:
        return None
    return RunningServer(url=_url(place, found.port), pid=found.pid, port=found.port, started_now=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    pid: int
    port: int
    state: str

    @property
    def ready(self) -> bool:
        return self.state == "ready"


def _look(place: Place) -> _Found | None:
    """Read ``postmaster.pid`` and believe it only if that process is a server on this data."""
    try:
        lines = (place.data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EmbeddedServerError(
            f"{place.data} cannot be read ({error.strerror}): run as the account that owns it"
        ) from error
    if len(lines) < 4 or not lines[0].strip().isdigit():
        return None
    pid = int(lines[0])
    if not is_alive(pid) or not was_started_with(pid, str(place.data.resolve())):
        return None
    return _Found(pid=pid, port=int(lines[3] or 0), state=lines[7].strip() if len(lines) > 7 else "starting")


def _wait_for_running(place: Place) -> RunningServer | None:
    """Return a server that runs already, giving one that is starting or stopping the time to finish."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while (found := _look(place)) is not None:
        if found.ready:
            return _announce(place, found, started_now=False)
        if time.monotonic() > deadline:
            raise EmbeddedServerError(f"the server (process {found.pid}) stays {found.state}: see {place.log}")
        wait_for_end([found.pid], 0.1)
    return None


def _announce(place: Place, found: _Found, *, started_now: bool) -> RunningServer:
    url = _url(place, found.port)
    if place.read("url") != url:
        place.write("url", url)
    return RunningServer(url=url, pid=found.pid, port=found.port, started_now=started_now)


def _url(place: Place, port: int) -> str:
    return f"postgres://{NAME}:{place.read('password') or ''}@{HOST}:{port}/{NAME}"


def _clear_remains(cluster: Cluster) -> None:
    """End what a killed server left behind.

    Backends notice the death of their server unless they are busy; PostgreSQL will not start beside one. A lock file whose
    number belongs to a stranger by now, or to the dead server that nobody has reaped, would stop it too.
    """
    lock_file = cluster.data / "postmaster.pid"
    if not lock_file.exists():
        return
    for signum in (None, signal.SIGTERM, signal.SIGKILL):
        orphans = list(processes_in(cluster.data))
        if signum is not None:
            for pid in orphans:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signum)
        deadline = time.monotonic() + ORPHAN_PATIENCE_S
        while any(is_alive(pid) for pid in orphans) and time.monotonic() < deadline:
            time.sleep(0.05)
    first = lock_file.read_text(encoding="utf-8").split("\n", 1)[0].strip()
    if first.isdigit() and not was_started_with(int(first), str(cluster.data)):
        lock_file.unlink()


def _free_port(remembered: str | None) -> int:
    """Return the remembered port if it is free, else one that the system picks."""
    for port in (int(remembered) if remembered and remembered.isdigit() else 0, 0):
        with socket.socket() as probe, contextlib.suppress(OSError, OverflowError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return int(probe.getsockname()[1])
    raise EmbeddedServerError(f"no free port on {HOST}")


def _command(cluster: Cluster, port: int, durable: bool) -> list[str]:
    options = OPTIONS if durable else OPTIONS | EPHEMERAL_OPTIONS
    command = [str(cluster.server.postgres), "-D", str(cluster.data), "-p", str(port)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    return command


def _launch(place: Place, cluster: Cluster, command: list[str], dies_with_caller: bool) -> bool:
    """Start the server and wait until it is ready.

    Returns:
        False when the port was taken between the probe and the start.

    Raises:
        EmbeddedServerError: it ended, or is not ready in time.
    """
    log = place.open_log()
    begin = os.fstat(log).st_size
    account = cluster.account
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env=ENVIRONMENT,
            start_new_session=True,
            preexec_fn=end_with_parent if dies_with_caller else None,  # noqa: PLW1509 (a keeper has no threads)
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
        )
    except OSError as error:
        raise EmbeddedServerError(f"{command[0]} cannot be run: {error.strerror}") from error
    finally:
        os.close(log)
    deadline = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None:
        found = _look(place)
        if found is not None and found.pid == process.pid and found.ready:
            # The server outlives this object on purpose; without this its end would be reported as a leak.
            process.returncode = 0
            return True
        if time.monotonic() > deadline:
            process.send_signal(signal.SIGQUIT)
            raise EmbeddedServerError(f"PostgreSQL is not ready after {START_TIMEOUT_S:.0f} s: see {place.log}")
        time.sleep(0.02)
    with place.log.open("rb") as written:
        written.seek(begin)
        if b"could not bind" in written.read():
            return False
    raise EmbeddedServerError(f"PostgreSQL did not start: {place.last_words(begin)} (see {place.log})")
