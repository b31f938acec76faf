"""A web server on loopback that does what real ones do to a crawler: stall, trickle, lie about lengths, lead astray.

It speaks through plain sockets, since a decent HTTP library would not let it misbehave.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping

Behavior = Callable[["Visit"], bool]  #: Answers one request; True when the connection may go on.


class Visit:
    """One request, and the connection to answer it on."""

    def __init__(self, server: MisbehavingServer, connection: socket.socket, path: str, headers: Mapping[str, str]):
        self.server = server
        self.connection = connection
        self.path = path
        self.headers = headers

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.connection.sendall(data)

    def pause(self, seconds: float) -> bool:
        """Wait, and say whether the server is being closed."""
        return self.server.closing.wait(seconds)


class MisbehavingServer:
    """Routes of paths to behaviors, with a record of what was asked, on connections of its own threads."""

    def __init__(self) -> None:
        self.routes: dict[str, Behavior] = {}
        self.default: Behavior = answer(404, b"no such page")
        self.paths: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.connections = 0
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._open: list[socket.socket] = []
        self._threads[0].start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._listener.getsockname()[1])

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the address of ``path``."""
        return f"http://{host}:{self.port}{path}"

    def close(self) -> None:
        """End every connection and thread."""
        self.closing.set()
        # Closing alone does not wake a thread that waits in accept.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                self._open.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as reader:
            while line := reader.readline():
                path = line.decode("latin-1").split()[1]
                headers = {}
                while (header := reader.readline().decode("latin-1").strip()) != "":
                    name, _, value = header.partition(":")
                    headers[name.lower()] = value.strip()
                with self._lock:
                    self.paths.append(path)
                    self.headers.append(headers)
                behavior = self.routes.get(path.partition("?")[0], self.default)
                if not behavior(Visit(self, connection, path, headers)):
                    return


@contextlib.contextmanager
def misbehaving_server() -> Iterator[MisbehavingServer]:
    """Run a server for the length of the block."""
    server = MisbehavingServer()
    try:
        yield server
    finally:
        server.close()


def head(status: int, headers: Mapping[str, str | int]) -> bytes:
    """Return a status line with headers."""
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def answer(status: int, body: bytes = b"", headers: Mapping[str, str | int] | None = None) -> Behavior:
    """Answer properly."""

    def behave(visit: Visit) -> bool:
        visit.send(head(status, {"Content-Length": len(body), **(headers or {})}) + body)
        return True

    return behave


def redirect(location: str, status: int = 302) -> Behavior:
    """Send the visitor elsewhere."""
    return answer(status, b"moved", {"Location": location})


def promise_more(body: bytes, length: int) -> Behavior:
    """Send fewer bytes than the header promises, then hang up."""

    def behave(visit: Visit) -> bool:
        visit.send(head(200, {"Content-Length": length}) + body)
        return False

    return behave


def cut_chunks(body: bytes) -> Behavior:
    """Hang up in the middle of a chunk."""

    def behave(visit: Visit) -> bool:
        visit.send(head(200, {"Transfer-Encoding": "chunked"}))
        visit.send(f"{len(body):x}\r\n".encode() + body + b"\r\n" + b"ffff\r\n" + body)
        return False

    return behave


def chunked(body: bytes) -> Behavior:
    """Send a body in proper chunks."""

    def behave(visit: Visit) -> bool:
        visit.send(head(200, {"Transfer-Encoding": "chunked"}))
        visit.send(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")
        return True

    return behave


def until_close(body: bytes) -> Behavior:
    """Send a body whose only end is the end of the connection."""

    def behave(visit: Visit) -> bool:
        visit.send(head(200, {"Connection": "close"}) + body)
        return False

    return behave


def endless(chunk: bytes) -> Behavior:
    """Send without end and without a length."""

    def behave(visit: Visit) -> bool:
        visit.send(head(200, {"Connection": "close"}))
        while not visit.pause(0):
            visit.send(chunk)
        return False

    return behave


def trickle(prefix: bytes, drop: bytes = b"x") -> Behavior:
    """Send ``prefix``, then a drop at a time for ever; each drop arrives well within any time-out of a read."""

    def behave(visit: Visit) -> bool:
        visit.send(prefix)
        while not visit.pause(0.02):
            visit.send(drop)
        return False

    return behave


def stall(prefix: bytes = b"") -> Behavior:
    """Send ``prefix`` and then nothing, ever."""

    def behave(visit: Visit) -> bool:
        visit.send(prefix)
        visit.pause(60)
        return False

    return behave
