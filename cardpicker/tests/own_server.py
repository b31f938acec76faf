"""A PostgreSQL of the test's own: reached over a real network, with TLS if asked, its log at hand."""

from __future__ import annotations

import contextlib
import datetime
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.core.management import call_command
from django.db import connection
from django_q.models import Schedule

from cardpicker.tests.cluster import eventually
from scripts.ops.drill.database import make_folder
from scripts.ops.embedded.account import Account, can_read_tree, server_account
from scripts.ops.embedded.binaries import ServerFolder, copy_server, installed_servers
from scripts.ops.embedded.cluster import ENVIRONMENT

OWNER = "cardpicker"
START_S = 60.0
END_S = 20.0
OPTIONS = {
    "unix_socket_directories": "",
    "max_connections": "60",
    "fsync": "off",
    "full_page_writes": "off",
    "log_connections": "on",
    "log_line_prefix": "%m [%p] ",
}
TLS = {"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnServer:
    """A server that accepts connections at one address."""

    address: str
    port: int
    password: str
    log: Path
    query: str  #: What its URL ends with.

    def url(self, name: str) -> str:
        """Return the URL of one of its databases."""
        return f"postgres://{OWNER}:{self.password}@{self.address}:{self.port}/{name}{self.query}"


def server_with_tls() -> ServerFolder:
    """Return an installed server that was built with TLS, which those of the wheel are not; skip where there is none."""
    for server in installed_servers():
        # Asked before all else, the question needs no data but settings, and may come from root.
        folder = make_folder()
        try:
            (folder / "postgresql.conf").touch()
            command = [str(server.postgres), "-C", "ssl_library", "-D", str(folder)]
            if subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip():
                return server
        finally:
            shutil.rmtree(folder)
    pytest.skip("no PostgreSQL with TLS is installed: apt install postgresql")


@contextlib.contextmanager
def own_server(server: ServerFolder, address: str = "127.0.0.1", *, tls: bool = False) -> Iterator[OwnServer]:
    """Have a server on ``address`` until the block ends; it keeps nothing."""
    folder = make_folder()
    data, log, password = folder / "data", folder / "log", secrets.token_hex(20)
    account = server_account(data)
    if account.dropped and not can_read_tree(server.root, account):
        server = copy_server(server, folder)
    try:
        _make_data(server, account, folder, password)
        options = {**OPTIONS, "listen_addresses": address, **(TLS if tls else {})}
        (data / "pg_hba.conf").write_text(f"{'hostssl' if tls else 'host'} all all {address}/24 scram-sha-256\n")
        if tls:
            _sign_for_itself(data, address)
        account.own(data)
        port = _free_port(address)
        command = [str(server.postgres), "-D", str(data), "-p", str(port)]
        command += [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        made = OwnServer(
            address=address, port=port, password=password, log=log, query="?sslmode=require" if tls else ""
        )
        with log.open("wb") as written, _process(command, account, written.fileno()) as process:
            eventually(lambda: _answers(made, process), f"the server to answer; its log: {log.read_text()}", START_S)
            yield made
    finally:
        shutil.rmtree(folder)


@contextlib.contextmanager
def catalog_on(server: OwnServer) -> Iterator[str]:
    """Let the test's own connection, and what it starts, use a database on ``server``; yields its URL."""
    name = str(connection.settings_dict["NAME"])
    with contextlib.closing(psycopg2.connect(server.url("postgres"))) as session:
        session.autocommit = True
        with session.cursor() as cursor:
            cursor.execute(f'CREATE DATABASE "{name}"')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CARDPICKER_DATABASE_URL", server.url(name))
        connection.close()
        try:
            call_command("migrate", verbosity=0)
            # As in the tests' database, nothing happens but what the test does.
            Schedule.objects.all().delete()
            yield server.url(name)
        finally:
            connection.close()


def _make_data(server: ServerFolder, account: Account, folder: Path, password: str) -> None:
    secret = folder / "secret"
    secret.write_text(password)
    data = folder / "data"
    data.mkdir(mode=0o700)
    account.own(folder)
    command: list[str | Path] = [server.initdb, "-D", data, "-U", OWNER, "--auth=scram-sha-256", "--pwfile", secret]
    command += ["--encoding=UTF8", "--locale=C", "--no-sync"]
    made = subprocess.run(
        command,
        cwd="/",
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        user=account.user,
        group=account.group,
        extra_groups=account.extra_groups,
    )
    assert made.returncode == 0, made.stderr


@contextlib.contextmanager
def _process(command: list[str], account: Account, log: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command,
        cwd="/",
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        user=account.user,
        group=account.group,
        extra_groups=account.extra_groups,
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()


def _answers(server: OwnServer, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, f"the server ended: {server.log.read_text()}"
    try:
        psycopg2.connect(server.url("postgres")).close()
    except psycopg2.OperationalError:
        return False
    return True


def _free_port(address: str) -> int:
    with socket.socket() as free:
        free.bind((address, 0))
        return int(free.getsockname()[1])


def _sign_for_itself(data: Path, address: str) -> None:
    """Leave a key, and a certificate that nobody else vouches for, in the data folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, address)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    (data / "server.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (data / "server.key").touch(mode=0o600)
    (data / "server.key").write_bytes(private)
