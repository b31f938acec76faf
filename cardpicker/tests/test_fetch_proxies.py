"""Fetching through the environment's proxies, and what they are not asked for."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator

import pytest

from cardpicker.stage_c.fetch.fetcher import Trust, fetch_image
from cardpicker.stage_c.outcomes import Failed, Fetched, FetchOutcome, Unusable
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, Visit, misbehaving_server

IMAGE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4
SETTINGS = StageCSettings(fetch_deadline_s=20.0, fetch_max_bytes=100_000)
PUBLIC = "http://images.example.test/card.png?key=1"


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[MisbehavingServer]:
    """A proxy on loopback that the environment names, and no others."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with misbehaving_server() as running:
        monkeypatch.setenv("HTTP_PROXY", running.url("/"))
        monkeypatch.setenv("HTTPS_PROXY", running.url("/"))
        running.default = on.answer(200, IMAGE)
        yield running


def fetch(url: str, trust: Trust | None = None) -> FetchOutcome:
    return fetch_image(url, settings=SETTINGS, trust=trust or Trust())


def test_a_public_image_is_asked_of_the_proxy_by_its_whole_url(proxy: MisbehavingServer) -> None:
    """The proxy may be private: the operator named it. Its host need not resolve here."""
    assert isinstance(fetch(PUBLIC), Fetched)
    assert proxy.paths == ["http://images.example.test/card.png?key=1"]
    assert proxy.headers[0]["host"] == "images.example.test"


def test_credentials_of_the_proxy_reach_it_and_no_message(
    proxy: MisbehavingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User and password go into the proxy's own header."""
    monkeypatch.setenv("HTTP_PROXY", f"http://me:s%40cret@127.0.0.1:{proxy.port}")

    assert isinstance(fetch(PUBLIC), Fetched)
    assert proxy.headers[0]["proxy-authorization"] == f"Basic {base64.b64encode(b'me:s@cret').decode()}"
    proxy.close()
    assert "cret" not in str(fetch(PUBLIC))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/card.png",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.1.2.3/card.png",
        "http://[::1]/card.png",
        "http://[::ffff:10.0.0.1]/card.png",
        "http://[64:ff9b::a00:1]/card.png",
        "http://localhost/card.png",
        "http://metadata.google.internal/computeMetadata/v1/",
        "http://printer.local/card.png",
        "https://127.0.0.1/card.png",
    ],
)
def test_private_places_are_not_asked_of_a_proxy(proxy: MisbehavingServer, url: str) -> None:
    """It could reach what this machine must not."""
    outcome = fetch(url)

    assert isinstance(outcome, Unusable)
    assert "private address" in outcome.detail
    assert proxy.connections == 0


@pytest.mark.parametrize(
    ("no_proxy", "is_direct"),
    [
        ("127.0.0.1", True),
        ("127.0.0.0/8", True),
        ("*", True),
        ("other.example, 127.0.0.1:{port}", True),
        ("127.0.0.1:1", False),
        ("", False),
        ("0.0.1", False),
    ],
)
def test_no_proxy_names_what_is_asked_directly(
    proxy: MisbehavingServer, monkeypatch: pytest.MonkeyPatch, no_proxy: str, is_direct: bool
) -> None:
    """Hosts, networks, ports and everything."""
    with misbehaving_server() as server:
        server.default = on.answer(200, IMAGE)
        # Not one of the names of loopback that are never passed on.
        monkeypatch.setenv("NO_PROXY", no_proxy.format(port=server.port).replace("127.0.0.1", "127.0.0.2"))
        fetch(server.url("/card.png", "127.0.0.2"), Trust(private_hosts=frozenset({"127.0.0.2"})))

        # The server listens on 127.0.0.1 only: what is direct reaches nobody, what is not reaches the proxy.
        assert proxy.connections == (0 if is_direct else 1)


def test_a_source_on_this_machine_is_never_asked_of_the_proxy(proxy: MisbehavingServer) -> None:
    """The proxy's loopback is another one."""
    with misbehaving_server() as server:
        server.default = on.answer(200, IMAGE)
        trust = Trust(private_hosts=frozenset({"127.0.0.1"}))

        assert isinstance(fetch(server.url("/card.png"), trust), Fetched)
        assert (server.connections, proxy.connections) == (1, 0)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (on.answer(407), "the proxy answered 407"),
        (on.answer(502), "the proxy answered 502"),
        (lambda visit: False, "the proxy hung up"),
    ],
)
def test_a_tunnel_that_is_refused_is_a_failure(proxy: MisbehavingServer, reply: on.Behavior, said: str) -> None:
    """Another try may be let through; it says nothing of the image."""
    proxy.default = reply

    outcome = fetch("https://images.example.test/card.png")

    assert isinstance(outcome, Failed)
    assert said in outcome.detail
    assert proxy.paths == ["images.example.test:443"]


def test_through_a_tunnel_it_is_the_host_that_shakes_hands(proxy: MisbehavingServer) -> None:
    """After its 200 the proxy only passes bytes: the first of them are TLS."""
    first: list[bytes] = []

    def tunnel(visit: Visit) -> bool:
        visit.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        first.append(visit.connection.recv(3, socket.MSG_PEEK))
        return False

    proxy.default = tunnel

    assert isinstance(fetch("https://images.example.test/card.png"), Failed)
    assert first[0][:2] == b"\x16\x03"


@pytest.mark.parametrize("url", ["socks5://127.0.0.1:1080", "https://127.0.0.1", "http://", "http://h:x"])
def test_a_proxy_that_cannot_be_used_is_not_gone_around(
    proxy: MisbehavingServer, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """Whoever set one does not want direct connections."""
    monkeypatch.setenv("HTTP_PROXY", url)

    outcome = fetch(PUBLIC)

    assert isinstance(outcome, Failed)
    assert "the environment's proxy" in outcome.detail
