"""The proxies that the environment names, and which hosts are reached without one.

With a proxy the address that is dialed is the proxy's, which the operator vouches for. What is asked of it is held to
the same rules as far as they can be seen from here: no private address by number, nor by a name that resolves to one.
"""

from __future__ import annotations

import base64
import ipaddress
import urllib.parse
import urllib.request
from dataclasses import dataclass

from cardpicker.stage_c.fetch.addresses import is_public, resolve
from cardpicker.stage_c.fetch.urls import Target

_LOOK_UP_S = 3.0
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class ProxyError(OSError):
    """The proxy of the environment cannot be used, or does not let a request through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An HTTP proxy."""

    host: str
    port: int
    authorization: str = ""

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"


@dataclass(frozen=True, slots=True)
class Proxies:
    """The environment's proxies, by scheme, as they were when this was made."""

    by_scheme: dict[str, str]

    @classmethod
    def from_environment(cls) -> Proxies:
        """Read HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in either case."""
        return cls(urllib.request.getproxies_environment())

    def proxy_for(self, target: Target, private_hosts: frozenset[str]) -> Proxy | None:
        """Return the proxy that ``target`` is asked through, None when it is asked directly.

        Raises:
            ProxyError: the environment names one that cannot be used.
        """
        # A source on this machine means this machine, not the proxy's.
        if target.host in _LOOPBACK_NAMES and target.host in private_hosts:
            return None
        url = self.by_scheme.get("https" if target.tls else "http") or self.by_scheme.get("all")
        if not url or _is_exempt(target, self.by_scheme.get("no", "")):
            return None
        return _parse(url)


def is_askable(target: Target, seconds: float) -> bool:
    """Whether a proxy may be asked for ``target``: a private host that is known as such here is not passed on.

    A name that does not resolve here may do so at the proxy: many a host behind one has no look-up of its own.
    """
    try:
        found = resolve(target.host, target.port, min(seconds, _LOOK_UP_S))
    except OSError:
        return target.host not in _LOOPBACK_NAMES and not target.host.endswith((".localhost", ".local", ".internal"))
    return all(is_public(str(entry[4][0])) for entry in found)


def _is_exempt(target: Target, no_proxy: str) -> bool:
    """Whether NO_PROXY, a list of hosts, domains and networks, names the target; a domain means all below it too."""
    for entry in filter(None, no_proxy.replace(" ", "").lower().split(",")):
        pattern, _, port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        pattern = pattern.removeprefix("*").lstrip(".")
        if entry == "*" or (port in ("", str(target.port)) and _is_within(target.host, pattern)):
            return True
    return False


def _is_within(host: str, pattern: str) -> bool:
    if pattern and (host == pattern or host.endswith(f".{pattern}")):
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:
        return False


def _parse(url: str) -> Proxy:
    try:
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ProxyError("the environment's proxy is no URL") from None
    if parts.scheme != "http" or not host:
        raise ProxyError(f"the environment's proxy is of the kind {parts.scheme[:20]!r}: only http proxies are used")
    user, password = (urllib.parse.unquote(part or "") for part in (parts.username, parts.password))
    secret = base64.b64encode(f"{user}:{password}".encode()).decode() if user else ""
    return Proxy(host=host, port=port or 80, authorization=f"Basic {secret}" if secret else "")
