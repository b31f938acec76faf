"""The slot's connection: refused, broken, pooled or silent, it gives no slot and says why."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pwd
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from psycopg2 import extensions

from cardpicker.stage_e.concurrency import (
    SlotConnectionError,
    SlotSettings,
    TransactionPoolerError,
    probe,
    try_acquire_dispatch_slot,
)
from cardpicker.tests.cluster import running_cluster
from cardpicker.tests.slot_support import new_host, watching
from cardpicker.tests.work_support import PATIENCE_S, eventually

pytestmark = pytest.mark.django_db

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@pytest.fixture
def one_slot(db: None) -> SlotSettings:
    """A host of its own with one slot, on the tests' server."""
    return new_host()


def test_both_ends_look_for_a_silent_network(one_slot: SlotSettings) -> None:
    """Within about a minute of silence either side gives the slot's connection up."""
    with watching(one_slot) as server:
        if server.ask("SELECT inet_server_addr()") == [(None,)]:
            pytest.skip("not possible here: the server is reached through a Unix socket")
        with socket.socket(fileno=os.dup(server.session.fileno())) as ours:
            names = ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")
            mine = {name: ours.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in names}
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        asked = "SELECT name, setting::int FROM pg_settings WHERE name ~ '^tcp_|^client_connection_check_interval$'"
        theirs = dict(server.ask(asked))

    assert mine["TCP_KEEPIDLE"] + mine["TCP_KEEPINTVL"] * mine["TCP_KEEPCNT"] <= 60
    assert theirs["tcp_keepalives_idle"] + theirs["tcp_keepalives_interval"] * theirs["tcp_keepalives_count"] <= 60
    assert 0 < mine["TCP_USER_TIMEOUT"] <= 60_000
    assert 0 < theirs["tcp_user_timeout"] <= 60_000
    assert 0 < theirs["client_connection_check_interval"] <= 10_000


def test_silent_holder_loses_its_slot(one_slot: SlotSettings) -> None:
    """A holder that was stopped says nothing, and keeps its connection: the server takes the slot back."""
    silent = dataclasses.replace(one_slot, silence_s=1)
    with try_acquire_dispatch_slot(silent) as held, watching(one_slot) as server:
        assert held is not None and held.still_held()
        assert eventually(lambda: not server.holders(one_slot))
        assert not held.still_held()
        with try_acquire_dispatch_slot(one_slot) as taken:
            assert taken == 0


@pytest.mark.parametrize("connect", [{"host": "127.0.0.1", "port": 1}, {"dsn": "nonsense"}])
def test_unreachable_server_is_no_slot_and_says_why(one_slot: SlotSettings, connect: dict[str, Any]) -> None:
    """A refused connection, or an address that is none, is one error of one line."""
    settings = dataclasses.replace(one_slot, connect=connect)
    with pytest.raises(SlotConnectionError) as raised, try_acquire_dispatch_slot(settings):
        pytest.fail("there is no slot to hold")
    assert len(str(raised.value).splitlines()) == 1
    assert "cannot be opened: " in str(raised.value)


def test_server_that_goes_after_its_greeting_is_no_slot(one_slot: SlotSettings) -> None:
    """A connection that breaks before the lock is taken is the same error as one that never opened."""
    with greeting_only() as port:
        settings = dataclasses.replace(
            one_slot, connect={"host": "127.0.0.1", "port": port, "user": "anyone", "sslmode": "disable"}
        )
        with pytest.raises(SlotConnectionError, match="broke: "), try_acquire_dispatch_slot(settings):
            pytest.fail("there is no slot to hold")


@contextlib.contextmanager
def greeting_only() -> Iterator[int]:
    """Serve one client that is let in like by PostgreSQL and then left alone; yields the port."""

    def message(kind: bytes, body: bytes) -> bytes:
        return kind + (len(body) + 4).to_bytes(4, "big") + body

    parameters = {"client_encoding": "UTF8", "server_version": "15.0", "DateStyle": "ISO, MDY"}
    parameters["standard_conforming_strings"] = "on"
    greeting = message(b"R", bytes(4))
    greeting += b"".join(message(b"S", f"{name}\0{value}\0".encode()) for name, value in parameters.items())
    greeting += message(b"K", bytes(8)) + message(b"Z", b"I")

    def serve() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(4096)
            client.sendall(greeting)
            client.recv(4096)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE_S)
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(PATIENCE_S)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_pooler_under_the_slot_is_refused(one_slot: SlotSettings, tmp_path: Path, mode: str) -> None:
    """Behind a real pooler there is no slot, and the message says what to set."""
    with pgbouncer(one_slot, tmp_path, mode) as through:
        with pytest.raises(TransactionPoolerError, match="STAGE_E_LOCK_DSN"):
            probe(through)
        with pytest.raises(TransactionPoolerError), try_acquire_dispatch_slot(through):
            pytest.fail("there is no slot to hold")
    probe(one_slot)


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
def test_cluster_behind_a_pooler_does_not_start(one_slot: SlotSettings, tmp_path: Path) -> None:
    """A cluster whose slot would go through a pooler ends with the check that says so, before it takes a task."""
    with pgbouncer(one_slot, tmp_path, "transaction") as through:
        way = " ".join(f"{key}={value}" for key, value in through.connect.items())
        with running_cluster(tmp_path / "log", STAGE_E_LOCK_DSN=way) as cluster:
            assert cluster.wait(PATIENCE_S) == 1

    assert "cardpicker.E006" in (tmp_path / "log").read_text()


@contextlib.contextmanager
def pgbouncer(host: SlotSettings, folder: Path, mode: str) -> Iterator[SlotSettings]:
    """Have a pgbouncer before the tests' server; yields the way through it."""
    with contextlib.closing(psycopg2.connect(**host.connect)) as direct:
        server = direct.info
        target = {"host": server.host, "port": server.port, "dbname": server.dbname, "user": server.user}
        if server.password:
            target["password"] = server.password
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = folder / "pgbouncer.ini"
    config.write_text(
        "[databases]\n"
        f"pooled = {' '.join(f'{key}={value}' for key, value in target.items())}\n"
        "[pgbouncer]\n"
        f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
        f"pool_mode = {mode}\nignore_startup_parameters = options,extra_float_digits\n"
    )
    # It refuses to run as root.
    nobody = pwd.getpwnam("nobody")
    as_nobody = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}
    with (
        config.open() as text,
        subprocess.Popen(
            [str(PGBOUNCER), "-q", f"/dev/fd/{text.fileno()}"],
            pass_fds=[text.fileno()],
            stderr=subprocess.DEVNULL,
            **as_nobody,  # type: ignore[call-overload]
        ) as process,
    ):
        try:
            way = {"host": "127.0.0.1", "port": port, "dbname": "pooled", "user": "anyone"}
            assert eventually(lambda: answers(way)), "pgbouncer does not answer"
            yield dataclasses.replace(host, connect=way)
        finally:
            process.terminate()


def answers(way: dict[str, Any]) -> bool:
    """Whether a connection can be opened."""
    try:
        opened: extensions.connection = psycopg2.connect(**way)
    except psycopg2.OperationalError:
        return False
    opened.close()
    return True
