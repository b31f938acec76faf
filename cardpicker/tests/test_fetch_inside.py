"""No location, redirect or name from a catalog reaches an address inside, however it is written."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from cardpicker.stage_c.fetch.addresses import is_public
from cardpicker.stage_c.fetch.fetcher import Trust, fetch_image
from cardpicker.stage_c.outcomes import Failed, Fetched, Unusable
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server

SETTINGS = StageCSettings(fetch_deadline_s=5.0)
#: Ways to write loopback, and addresses that gateways translate to it or to other inside addresses.
INSIDE = [
    "127.0.0.1",
    "127.1",
    "127.0.0.2",
    "2130706433",
    "0x7f000001",
    "017700000001",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "[::1]",
    "[::]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fc00::1]",
    "[fec0::1]",
    "169.254.169.254",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "①②⑦.⓪.⓪.①",
]


class Listeners:
    """Sockets that hear whatever reaches loopback on one port."""

    def __init__(self, stack: ExitStack) -> None:
        first = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        self.port = int(first.getsockname()[1])
        second = stack.enter_context(socket.create_server(("::", self.port), family=socket.AF_INET6))
        self._sockets = [first, second]
        for each in self._sockets:
            each.setblocking(False)

    def heard(self) -> int:
        """Return how many connections came in."""
        count = 0
        for each in self._sockets:
            try:
                each.accept()[0].close()
                count += 1
            except BlockingIOError:
                pass
        return count


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    with ExitStack() as stack:
        yield Listeners(stack)


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


@pytest.mark.parametrize("host", INSIDE)
def test_a_location_inside_reaches_no_listener(listeners: Listeners, host: str) -> None:
    """Not one connection is made: the address is judged before it is dialed."""
    outcome = fetch_image(f"http://{host}:{listeners.port}/card.png", settings=SETTINGS)

    assert isinstance(outcome, Unusable | Failed)
    assert listeners.heard() == 0


@pytest.mark.parametrize("host", [host for host in INSIDE if host != "127.0.0.1"])
def test_a_redirect_inside_reaches_no_listener(server: MisbehavingServer, listeners: Listeners, host: str) -> None:
    """Not from a source on this machine, and not where the redirect's host is an allowed one."""
    server.routes["/card.png"] = on.redirect(f"http://{host}:{listeners.port}/card.png")
    allowed = frozenset({host.strip("[]").lower(), "localhost"})
    trust = Trust(private_hosts=frozenset({"127.0.0.1"}), redirect_hosts=allowed)

    outcome = fetch_image(server.url("/card.png"), settings=SETTINGS, trust=trust)

    assert isinstance(outcome, Unusable | Failed)
    assert len(server.paths) == 1
    assert listeners.heard() == 0


def test_a_name_that_resolves_inside_reaches_no_listener(listeners: Listeners, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever owns a name may let it point anywhere; every one of its addresses is judged."""
    inside = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", listeners.port)),
        (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", listeners.port, 0, 0)),
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: inside)

    outcome = fetch_image(f"http://rebound.example:{listeners.port}/card.png", settings=SETTINGS)

    assert isinstance(outcome, Unusable)
    assert listeners.heard() == 0


def test_the_address_that_was_judged_is_the_one_that_is_dialed(
    listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that points elsewhere at the second look-up gains nothing: there is no second look-up."""
    looks = 0

    def look_up(*args: object, **kwargs: object) -> list[object]:
        nonlocal looks
        looks += 1
        address = "192.0.2.1" if looks == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, listeners.port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    fetch_image(f"http://rebound.example:{listeners.port}/card.png", settings=StageCSettings(fetch_deadline_s=1.0))

    assert looks == 1
    assert listeners.heard() == 0


def test_a_name_look_up_that_hangs_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resolver's own patience is many times that."""
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: release.wait(60))
    started = time.monotonic()

    outcome = fetch_image("http://slow.example/card.png", settings=StageCSettings(fetch_deadline_s=1.0))

    release.set()
    assert isinstance(outcome, Failed)
    assert "in time" in outcome.detail
    assert time.monotonic() - started < 20


@pytest.mark.parametrize(("allowed", "kind"), [("127.0.0.2", Fetched), ("", Unusable), ("evil127.0.0.2", Unusable)])
def test_redirects_lead_to_allowed_hosts_only(
    server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch, allowed: str, kind: type
) -> None:
    """A public host that nobody allowed is refused before anything is asked of it."""
    image = b"\x89PNG\r\n\x1a\n" + bytes(500)
    server.routes["/card.png"] = on.redirect(server.url("/other.png", "127.0.0.2"))
    server.routes["/other.png"] = on.answer(200, image)
    elsewhere = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: elsewhere)
    trust = Trust(
        private_hosts=frozenset({"127.0.0.1", "127.0.0.2"}), redirect_hosts=frozenset({allowed} if allowed else ())
    )

    outcome = fetch_image(server.url("/card.png"), settings=SETTINGS, trust=trust)

    assert isinstance(outcome, kind)
    assert server.paths == (["/card.png", "/other.png"] if kind is Fetched else ["/card.png"])


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("64:ff9b::5db8:d822", True),
        ("2002:5db8:d822::", True),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::10.0.0.1", False),
        ("2002:a00:1::", False),
        ("::ffff:192.168.0.1", False),
        ("::10.0.0.1", False),
        ("240.0.0.1", False),
        ("64:ff9b:1::5db8:d822", False),
        ("fec0::1", False),
        ("2001:0:5db8:d822::", False),
        ("::ffff:0:10.0.0.1", False),
        ("192.0.2.1", False),
        ("ff02::1", False),
        ("not an address", False),
    ],
)
def test_wrapped_addresses_are_judged_by_what_is_inside(address: str, public: bool) -> None:
    """NAT64, 6to4 and mapped addresses are as public as the IPv4 address that they lead to."""
    assert is_public(address) is public
