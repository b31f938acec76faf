"""One HTTP connection whose every wait ends at a deadline, to an address that was checked before it was dialed.

Time-outs of a socket count from read to read, so a server that trickles could hold a thread for ever; here a timer
cuts the socket itself at the deadline, whatever the thread is waiting for. A name look-up, which cannot be cut, is left
behind.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import socket
import ssl
import threading
import time
from types import TracebackType

from cardpicker.stage_c.fetch.addresses import is_public, resolve
from cardpicker.stage_c.fetch.proxies import Proxy, ProxyError

_REPLY_BYTES = 16_384
CONNECT_TIMEOUT_S = 10.0


class PrivateAddressError(OSError):
    """The host has no address but private ones, and the location's source is not on that host."""


class Deadline:
    """The moment by which an exchange is over; entered as a context, it cuts the socket it guards at that moment."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self._cut)
        self._timer.daemon = True

    def __enter__(self) -> Deadline:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._socket = None

    @property
    def remaining_s(self) -> float:
        """Seconds left, never below a millisecond, since 0 would mean a socket that does not wait at all."""
        return max(0.001, self._ends_at - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the moment is over."""
        return time.monotonic() >= self._ends_at

    def guard(self, connected: socket.socket) -> None:
        """Cut ``connected``, and no longer the socket guarded before, at the deadline."""
        connected.settimeout(self.remaining_s)
        with self._lock:
            self._socket = connected
        if self.passed:
            self._cut()

    def _cut(self) -> None:
        with self._lock:
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    # The plain method also for TLS: SSLSocket's own would pull the session from under the reader.
                    socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class Connection(http.client.HTTPConnection):
    """A connection to one host; ``deadline`` is set anew for every exchange."""

    def __init__(self, *, host: str, port: int, tls: bool, public_only: bool, proxy: Proxy | None = None) -> None:
        self.default_port = 443 if tls else 80
        super().__init__(host, port)
        self.deadline: Deadline | None = None
        self.proxy = proxy
        self._tls = tls
        self._public_only = public_only

    def connect(self) -> None:
        """Dial one of the host's allowed addresses, or the proxy, and, for https, shake hands, within the deadline."""
        assert self.deadline is not None
        if self.proxy is None:
            dialed = dial(self.host, self.port, public_only=self._public_only, deadline=self.deadline)
        else:
            dialed = dial(self.proxy.host, self.proxy.port, public_only=False, deadline=self.deadline)
        self.sock = dialed
        self.deadline.guard(dialed)
        if self._tls:
            if self.proxy is not None:
                _open_tunnel(dialed, self.host, self.port, self.proxy)
            # The socket's time-out bounds the handshake as a whole.
            self.sock = tls_context().wrap_socket(dialed, server_hostname=self.host)
            self.deadline.guard(self.sock)


def dial(host: str, port: int, *, public_only: bool, deadline: Deadline) -> socket.socket:
    """Connect to ``host``, to the very address that was checked.

    Raises:
        PrivateAddressError: ``public_only``, and every address of the host is private.
        OSError: the name is unknown, or no address answers in time.
    """
    problem: OSError = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in resolve(host, port, deadline.remaining_s):
        if public_only and not is_public(str(address[0])):
            problem = PrivateAddressError(f"{host} is a private address")
            continue
        dialed = socket.socket(family, kind, protocol)
        try:
            dialed.settimeout(min(CONNECT_TIMEOUT_S, deadline.remaining_s))
            dialed.connect(address)
        except OSError as error:
            dialed.close()
            problem = error
            continue
        dialed.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return dialed
    raise problem


def _open_tunnel(dialed: socket.socket, host: str, port: int, proxy: Proxy) -> None:
    """Ask the proxy for a plain connection to ``host``; the deadline that guards the socket bounds this too.

    Raises:
        ProxyError: it gives none.
    """
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {place} HTTP/1.1", f"Host: {place}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    dialed.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
    reply = b""
    # Byte by byte: what comes after the blank line belongs to the host behind the proxy.
    while not reply.endswith(b"\r\n\r\n"):
        byte = dialed.recv(1)
        if not byte or len(reply) >= _REPLY_BYTES:
            raise ProxyError("the proxy hung up, or did not end its answer")
        reply += byte
    status = reply.split(None, 2)[1:2]
    if status != [b"200"]:
        shown = status[0][:3].decode("latin-1") if status else "nothing"
        raise ProxyError(f"the proxy answered {shown}")


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the verifying context that all connections share: the host's certificates, or those SSL_CERT_FILE names."""
    return ssl.create_default_context()
