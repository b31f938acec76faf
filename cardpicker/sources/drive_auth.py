"""How a request to Google Drive says who asks: an API key, or a service account's token.

Both go into headers, which no log and no error of an HTTP library repeats. Tokens are signed by hand with
``cryptography``: RFC 7523 is twenty lines, and Google's own library would bring four packages for them.
"""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import requests

from cardpicker.sources.download import reason_of
from cardpicker.sources.errors import ListingError
from cardpicker.sources.settings import SourcesSettings

SCOPE = "https://www.googleapis.com/auth/drive.readonly"
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_LIFETIME_S = 3_600
#: A token is replaced so long before it ends.
_MARGIN_S = 300
_TIMEOUT_S = 30.0


class Credential(Protocol):
    """Who asks."""

    def headers(self, session: requests.Session) -> dict[str, str]:
        """Return the headers that say so now.

        Raises:
            ListingError: no token could be had.
        """
        ...


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, which sees what is public."""

    key: str

    def headers(self, session: requests.Session) -> dict[str, str]:
        """Return the key's header."""
        return {"X-Goog-Api-Key": self.key}

    def __repr__(self) -> str:
        return "ApiKey(…)"


class ServiceAccount:
    """A service account, which sees what is shared with it."""

    def __init__(self, path: str) -> None:
        """Read the account's key file.

        Raises:
            ListingError: it cannot be read, or is no such file.
        """
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        try:
            account: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
            key = load_pem_private_key(account["private_key"].encode(), password=None)
            self._email, self._token_url = str(account["client_email"]), str(account["token_uri"])
        except OSError as error:
            raise ListingError(f"GOOGLE_SERVICE_ACCOUNT_FILE: {path}: {error.strerror or error}.") from error
        except (ValueError, KeyError, TypeError, AttributeError):
            # The reason could repeat a part of the key.
            raise ListingError(
                f"GOOGLE_SERVICE_ACCOUNT_FILE: {path} is no service account's key file: download it as JSON again."
            ) from None
        if not isinstance(key, RSAPrivateKey):
            raise ListingError(f"GOOGLE_SERVICE_ACCOUNT_FILE: {path} holds no RSA key: download it as JSON again.")
        self._key = key
        self._token = ""
        self._ends_at = 0.0

    def headers(self, session: requests.Session) -> dict[str, str]:
        """Return a token's header, asking for a new token when the last one is about to end."""
        if time.time() > self._ends_at - _MARGIN_S:
            self._renew(session)
        return {"Authorization": f"Bearer {self._token}"}

    def _renew(self, session: requests.Session) -> None:
        now = int(time.time())
        form = {"grant_type": _GRANT, "assertion": self._assertion(now)}
        try:
            answer = session.post(self._token_url, data=form, timeout=_TIMEOUT_S, allow_redirects=False)
        except requests.RequestException as error:
            raise ListingError(f"Google gives no token: {reason_of(error)}.") from error
        try:
            token: dict[str, Any] = answer.json() if answer.ok else {}
            self._token, lasts_s = str(token["access_token"]), float(token.get("expires_in", _LIFETIME_S))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ListingError(
                f"Google gives the service account no token (it answered {answer.status_code}):"
                " check GOOGLE_SERVICE_ACCOUNT_FILE and this machine's clock."
            ) from None
        self._ends_at = now + lasts_s

    def _assertion(self, now: int) -> str:
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.hashes import SHA256

        claims = {"iss": self._email, "scope": SCOPE, "aud": self._token_url, "iat": now, "exp": now + _LIFETIME_S}
        signed = b".".join(_base64url(json.dumps(part).encode()) for part in ({"alg": "RS256", "typ": "JWT"}, claims))
        return b".".join((signed, _base64url(self._key.sign(signed, PKCS1v15(), SHA256())))).decode()


def credential_of(settings: SourcesSettings) -> Credential:
    """Return who asks, as the environment has it.

    Raises:
        ListingError: nothing is set, or the service account's file is unusable.
    """
    if settings.google_service_account_file:
        return ServiceAccount(settings.google_service_account_file)
    if settings.google_drive_api_key:
        return ApiKey(settings.google_drive_api_key)
    raise ListingError("Google Drive is listed with a key: set GOOGLE_DRIVE_API_KEY or GOOGLE_SERVICE_ACCOUNT_FILE.")


def _base64url(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
