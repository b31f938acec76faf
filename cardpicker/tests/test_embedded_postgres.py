"""The embedded server as its users meet it: the script, real processes and real kills."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest

PROJECT = Path(__file__).resolve().parents[2]
SCRIPT = PROJECT / "scripts" / "ops" / "postgres.py"
PATIENCE_S = 150.0


class Server:
    """The script with a data folder of its own."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.home = data_dir / "postgres"
        self.environment = os.environ | {"CARDPICKER_DATA_DIR": str(data_dir)}

    def popen(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the script."""
        return subprocess.Popen(
            [sys.executable, SCRIPT, *arguments],
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def call(self, *arguments: str) -> tuple[int, str, str]:
        """Run the script to its end and return its exit code and what it said."""
        process = self.popen(*arguments)
        out, err = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out.strip(), err.strip()

    def start(self, *arguments: str) -> str:
        """Start the server and return its URL."""
        code, out, err = self.call("start", *arguments)
        assert code == 0, err
        return out

    @property
    def pid(self) -> int:
        """The number of the server's main process, by its own file."""
        return int((self.home / "data" / "postmaster.pid").read_text().split("\n", 1)[0])

    def runs(self) -> bool:
        """Whether the script says that the server runs."""
        return self.call("status")[0] == 0


@pytest.fixture
def server() -> Iterator[Server]:
    """A data folder that the server's account can enter; its server is stopped at the end."""
    data_dir = Path(tempfile.mkdtemp(prefix="cardpicker-test-"))
    data_dir.chmod(0o711)
    made = Server(data_dir)
    yield made
    made.call("stop")
    shutil.rmtree(data_dir)


def ask(url: str, *statements: str) -> str:
    """Run statements on a connection of their own and return the last one's first value as text."""
    with contextlib.closing(psycopg2.connect(url)) as connection, connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return str((cursor.fetchone() or ("",))[0]) if cursor.description else ""


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether ``condition`` becomes true within the patience of a test."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_every_start_gives_the_same_server(server: Server) -> None:
    """Starts at once, and one more later, print one URL, and the server there answers."""
    starters = [server.popen("start") for _ in range(5)]
    urls = {starter.communicate(timeout=PATIENCE_S)[0].strip() for starter in starters}
    urls.add(server.start())

    assert len(urls) == 1
    assert ask(urls.pop(), "select 6 * 7") == "42"


def test_stop_keeps_data_and_port(server: Server) -> None:
    """A row and the address survive a stop; stopping twice is no error."""
    url = server.start()
    ask(url, "create table kept as select 1 as n")

    assert server.call("stop") == (0, "stopped", "")
    assert server.call("stop") == (0, "not running", "")
    assert server.start() == url
    assert ask(url, "select n from kept") == "1"


def test_status_and_url_tell_whether_it_runs(server: Server) -> None:
    """Exit code 3 and one line while there is no server; exit code 0 and its URL while there is."""
    assert server.call("status") == (3, "not running (no data yet)", "")
    assert server.call("url")[0] == 3

    url = server.start()

    assert server.call("status")[:1] == (0,)
    assert server.call("url") == (0, url, "")


def test_url_is_there_only_while_the_server_is_ready_and_only_for_its_owner(server: Server) -> None:
    """The file that settings read has the URL, mode 0600, and goes with the server."""
    url = server.start()
    file = server.home / "url"

    assert file.read_text().strip() == url
    assert file.stat().st_mode & 0o777 == 0o600
    server.call("stop")
    assert not file.exists()


def test_server_refuses_a_stranger_on_loopback(server: Server) -> None:
    """Without the password of the URL there is no session."""
    url = server.start()
    password = url.split(":")[2].split("@")[0]

    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        ask(url.replace(password, "guess"), "select 1")


def test_kill_of_the_server_loses_nothing_committed(server: Server) -> None:
    """After SIGKILL with a session in mid-statement, start recovers and the committed row is there."""
    url = server.start()
    ask(url, "create table kept as select 1 as n")
    with contextlib.closing(psycopg2.connect(url)) as busy:
        busy.cursor().execute("insert into kept values (2)")
        os.kill(server.pid, signal.SIGKILL)

        assert eventually(lambda: not server.runs())
        again = server.start()

    assert ask(again, "select count(*) from kept") == "1"


def test_stale_lock_file_of_a_stranger_does_not_stop_a_start(server: Server) -> None:
    """A killed server's number that another process has by now is not taken for the server."""
    server.start()
    lock_file = server.home / "data" / "postmaster.pid"
    lines = lock_file.read_text().split("\n", 1)
    server.call("stop")
    lock_file.write_text(f"{os.getpid()}\n{lines[1]}")
    owner = (server.home / "data").stat()
    os.chown(lock_file, owner.st_uid, owner.st_gid)

    assert not server.runs()
    assert ask(server.start(), "select 1") == "1"


def test_taken_port_is_replaced(server: Server) -> None:
    """A stranger on the remembered port moves the server to another, and that one is remembered."""
    url = server.start()
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    server.call("stop")
    with socket.create_server(("127.0.0.1", port)):
        moved = server.start()
        assert moved != url
        assert ask(moved, "select 1") == "1"
    server.call("stop")
    assert server.start() == moved


def test_interrupted_first_start_leaves_nothing_in_the_way(server: Server) -> None:
    """A half-made data folder of a killed start is made anew."""
    half = server.home / "data.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")

    assert ask(server.start(), "select 1") == "1"


def test_lost_password_is_replaced(server: Server) -> None:
    """Without its password file the server starts with a new password and the same data."""
    ask(server.start(), "create table kept as select 1 as n")
    server.call("stop")
    (server.home / "password").unlink()

    assert ask(server.start(), "select n from kept") == "1"


@pytest.mark.parametrize(
    ("name", "text", "said"), [("PG_VERSION", "9", "PostgreSQL 9"), ("letters", "", "move it away")]
)
def test_foreign_data_is_refused_and_left_alone(server: Server, name: str, text: str, said: str) -> None:
    """Data of another version and a folder of something else get one line that says what to do."""
    (server.home / "data").mkdir(parents=True)
    (server.home / "data" / name).write_text(text)

    code, _, err = server.call("start")

    assert code == 1
    assert said in err
    assert len(err.splitlines()) == 1
    assert (server.home / "data" / name).read_text() == text


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that may own a server."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_server_stops_with_its_killed_owner(server: Server, owner: subprocess.Popen[bytes]) -> None:
    """SIGKILL of the process named by --with-parent stops the server and takes its URL away."""
    url = server.start("--with-parent", str(owner.pid))
    assert ask(url, "select 1") == "1"

    owner.kill()

    assert eventually(lambda: not (server.home / "url").exists() and not server.runs())


def test_server_stops_with_its_killed_keeper(server: Server, owner: subprocess.Popen[bytes]) -> None:
    """SIGKILL of the keeper itself leaves no server behind."""
    server.start("--with-parent", str(owner.pid))
    keeper = int(Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()[1])

    os.kill(keeper, signal.SIGKILL)

    assert eventually(lambda: not server.runs())


def test_run_stops_what_it_started_and_returns_the_commands_code(server: Server) -> None:
    """The command finds the URL in its environment; its exit code comes back; the server is gone."""
    code, out, _ = server.call("run", "--", "sh", "-c", "echo $CARDPICKER_DATABASE_URL; exit 7")

    assert code == 7
    assert out.startswith("postgres://")
    assert not server.runs()


def test_run_leaves_a_server_that_ran_before(server: Server) -> None:
    """What was started plainly runs until it is stopped."""
    url = server.start()

    assert server.call("run", "--", "sh", "-c", "echo $CARDPICKER_DATABASE_URL") == (0, url, "")
    assert server.runs()


def test_ephemeral_server_takes_its_data_along_when_killed(server: Server) -> None:
    """SIGKILL of run --ephemeral removes the server and its temporary folder, and no other data was touched."""
    server.environment["TMPDIR"] = str(server.data_dir)
    process = server.popen("run", "--ephemeral", "--", "sh", "-c", "echo ready; exec sleep 600")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    temporary = next(server.data_dir.glob("cardpicker-*"))
    process.kill()
    process.wait()

    assert eventually(lambda: not temporary.exists())
    assert not server.home.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="not possible here: only root has a folder that the server cannot enter")
def test_data_of_a_private_folder_of_root_is_kept_where_the_server_can_go(server: Server) -> None:
    """Under root a folder of mode 0700 keeps its mode, and the server works all the same, again after a stop."""
    server.data_dir.chmod(0o700)
    url = server.start()
    elsewhere = Path(os.readlink(server.home / "data")).parent
    try:
        ask(url, "create table kept as select 1 as n")
        server.call("stop")

        assert ask(server.start(), "select n from kept") == "1"
        assert server.data_dir.stat().st_mode & 0o777 == 0o700
    finally:
        server.call("stop")
        shutil.rmtree(elsewhere)
