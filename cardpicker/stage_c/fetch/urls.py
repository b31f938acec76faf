"""What a URL must look like before anything is asked of it. The catalog's URLs come from strangers."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

MAX_URL_LENGTH = 2_000
_KEPT = "/%:@!$&'()*+,;=~-._"


class BadUrlError(ValueError):
    """The URL is not one that will be asked for; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One http or https URL, taken apart."""

    tls: bool
    host: str  #: Lower case, without brackets.
    port: int
    path: str  #: Path and query as sent, never empty.

    @property
    def url(self) -> str:
        """The whole URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == (443 if self.tls else 80) else f":{self.port}"
        return f"{'https' if self.tls else 'http'}://{host}{port}{self.path}"

    @property
    def shown(self) -> str:
        """The URL without its query, which may hold a key."""
        return self.url.partition("?")[0][:200]


def is_host_of(host: str, pattern: str) -> bool:
    """Whether ``host`` is the host, or below the ``.domain``, that ``pattern`` names."""
    return host.endswith(pattern) if pattern.startswith(".") else host == pattern


def parse_url(url: str, base: str = "") -> Target:
    """Take ``url`` apart, relative to ``base`` when that is given.

    Raises:
        BadUrlError: it is too long, not http or https, names no host or a user, or holds control characters.
    """
    if len(url) > MAX_URL_LENGTH:
        raise BadUrlError(f"a URL of {len(url)} characters")
    try:
        if any(character < " " or character == "\x7f" for character in url):
            raise BadUrlError("control characters in the URL")
        parts = urllib.parse.urlsplit(urllib.parse.urljoin(base, url) if base else url)
        port = parts.port
        host = (parts.hostname or "").encode("idna").decode("ascii") if parts.hostname else ""
        path = urllib.parse.quote(parts.path or "/", safe=_KEPT)
        query = urllib.parse.quote(parts.query, safe=_KEPT + "?")
    except UnicodeError:
        raise BadUrlError("a host name or character that no URL can have") from None
    except ValueError as error:
        raise BadUrlError(str(error)[:100]) from None
    if parts.scheme not in ("http", "https"):
        raise BadUrlError(f"the scheme {parts.scheme[:20]!r}; only http and https are fetched")
    if "@" in parts.netloc or not host:
        raise BadUrlError("no plain host name in the URL")
    tls = parts.scheme == "https"
    if port == 0:
        raise BadUrlError("port 0")
    path = path if path.startswith("/") else f"/{path}"
    return Target(tls=tls, host=host, port=port or (443 if tls else 80), path=f"{path}?{query}" if query else path)
