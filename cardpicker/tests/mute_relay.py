"""A relay before a server that falls mute: it keeps every connection open, takes what it is sent, and passes nothing on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator


class MuteRelay:
    """One relay on a port of its own."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._speaks = threading.Event()
        self._speaks.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_mute(self) -> None:
        """Pass nothing on from now."""
        self._speaks.clear()

    def speak(self) -> None:
        """Pass on what has been held back, and all that comes."""
        self._speaks.set()

    def close(self) -> None:
        """Take no more connections, and let those that are left end."""
        self._listener.close()
        self.speak()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=(one, other), daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while body := one.recv(65536):
                self._speaks.wait()
                other.sendall(body)
        self._speaks.wait()
        with contextlib.suppress(OSError):
            other.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def mute_relay(host: str, port: int) -> Iterator[MuteRelay]:
    """Have a relay before a server until the block ends."""
    relay = MuteRelay((host, port))
    try:
        yield relay
    finally:
        relay.close()
