"""One HTTP connection whose every wait ends at a deadline, to an address that was checked before it was dialed.

Time-outs of a socket count from read to read, so a server that trickles could hold a thread for ever; here a timer
cuts the socket itself at the deadline, whatever the thread is waiting for. Only the name look-up cannot be cut.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from types import TracebackType

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

    def __init__(self, *, host: str, port: int, tls: bool, public_only: bool) -> None:
        self.default_port = 443 if tls else 80
        super().__init__(host, port)
        self.deadline: Deadline | None = None
        self._tls = tls
        self._public_only = public_only

    def connect(self) -> None:
        """Dial one of the host's allowed addresses and, for https, shake hands, all within the deadline."""
        assert self.deadline is not None
        dialed = dial(self.host, self.port, public_only=self._public_only, deadline=self.deadline)
        self.sock = dialed
        self.deadline.guard(dialed)
        if self._tls:
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
    for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
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


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, an IPv4 address wrapped in IPv6 included."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    return parsed.is_global and not parsed.is_multicast


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the verifying context that all connections share: the host's certificates, or those SSL_CERT_FILE names."""
    return ssl.create_default_context()
