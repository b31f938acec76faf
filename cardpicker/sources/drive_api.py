"""The two questions that are asked of Google Drive's API, version 3: a page of a folder, and one file.

Pressure is answered with patience, a few times; what is left of it then fails the listing. A refusal of one folder or
file is a value of its own, since the rest of the drive may well be there.
"""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import requests
import urllib3

from cardpicker.bounded import call_within
from cardpicker.sources.download import USER_AGENT, reason_of
from cardpicker.sources.drive_auth import Credential
from cardpicker.sources.errors import ListingError

API_URL = "https://www.googleapis.com"
PAGE_FILES = 1_000

_FILE_FIELDS = (
    "id,name,mimeType,size,md5Checksum,sha256Checksum,modifiedTime,resourceKey,trashed"
    ",imageMediaMetadata(width,height),shortcutDetails(targetId,targetMimeType,targetResourceKey)"
)
_TRIES = 6
_FIRST_PAUSE_S, _LAST_PAUSE_S = 1.0, 60.0
_ANSWER_S, _SILENCE_S = 120.0, 60.0
_PRESSURE_REASONS = frozenset({"userRateLimitExceeded", "rateLimitExceeded", "sharingRateLimitExceeded"})
_SPENT_REASONS = frozenset({"dailyLimitExceeded", "quotaExceeded"})
_REFUSED_REASONS = frozenset({"insufficientFilePermissions", "insufficientPermissions", "forbidden", "notFound"})

JsonObject = Mapping[str, Any]


class RefusedError(Exception):
    """Google refuses this one file or folder, or knows of none; its text says which status."""


@dataclass(slots=True, kw_only=True)
class DriveApi:
    """A session with the API; one at a time, no threads."""

    credential: Credential
    url: str = API_URL
    pause: Callable[[float], None] = time.sleep
    session: requests.Session = field(default_factory=requests.Session)
    requests_made: int = 0
    server_time: datetime | None = None  #: By the first answer's own clock.

    def page(self, query: str, page_token: str, resource_keys: Mapping[str, str]) -> JsonObject:
        """Return one page of the files that ``query`` finds, the shared drives included.

        Raises:
            RefusedError: the folder that is asked for is not to be seen.
            ListingError: the page could not be had.
        """
        parameters = {
            "q": query,
            "pageSize": str(PAGE_FILES),
            "fields": f"nextPageToken,incompleteSearch,files({_FILE_FIELDS})",
            "supportsAllDrives": "true",
            "includeItemsFromAllDrives": "true",
            **({"pageToken": page_token} if page_token else {}),
        }
        return self._ask("/drive/v3/files", parameters, resource_keys)

    def file(self, identifier: str, resource_keys: Mapping[str, str]) -> JsonObject:
        """Return one file.

        Raises:
            RefusedError: it is not to be seen.
            ListingError: it could not be had.
        """
        parameters = {"fields": _FILE_FIELDS, "supportsAllDrives": "true"}
        return self._ask(f"/drive/v3/files/{identifier}", parameters, resource_keys)

    def _ask(self, path: str, parameters: Mapping[str, str], resource_keys: Mapping[str, str]) -> JsonObject:
        trouble = ""
        for attempt in range(_TRIES):
            asked_for_s = None
            try:
                answer = self._get(path, parameters, resource_keys)
                if answer.status_code == requests.codes.ok:
                    return _object(answer)
                trouble, asked_for_s = _trouble(answer), _retry_after_s(answer)
            except (OSError, urllib3.exceptions.HTTPError) as error:
                trouble = reason_of(error)
            if attempt + 1 < _TRIES:
                self.pause(_pause_s(attempt, asked_for_s))
        raise ListingError(f"Google Drive, after {_TRIES} tries: {trouble}; nothing was changed, try again later.")

    def _get(self, path: str, parameters: Mapping[str, str], resource_keys: Mapping[str, str]) -> requests.Response:
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json", **self.credential.headers(self.session)}
        if resource_keys:
            headers["X-Goog-Drive-Resource-Keys"] = ",".join(f"{key}/{value}" for key, value in resource_keys.items())
        self.requests_made += 1
        answer = call_within(
            _ANSWER_S,
            lambda: self.session.get(
                self.url + path, params=parameters, headers=headers, timeout=_SILENCE_S, allow_redirects=False
            ),
        )
        if self.server_time is None:
            self.server_time = _moment(answer.headers.get("Date", ""))
        return answer


def _object(answer: requests.Response) -> JsonObject:
    """Return the object that an answer holds; anything else fails the listing, since an empty one would look the same."""
    try:
        value = answer.json()
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ListingError("Google Drive: answered 200 with something that is no JSON object; nothing was changed.")
    return value


def _trouble(answer: requests.Response) -> str:
    """Return what is wrong with an answer worth another try.

    Raises:
        RefusedError: one file or folder is refused.
        ListingError: another try would say the same.
    """
    status, reason, message = answer.status_code, *_reason(answer)
    said = f"{status} {reason}".strip()
    if status == requests.codes.too_many_requests or reason in _PRESSURE_REASONS or status >= 500:
        return said
    if reason in _SPENT_REASONS:
        raise ListingError(f"Google Drive: {said}: the day's quota is spent; nothing was changed, try again tomorrow.")
    if status == requests.codes.not_found or (status == requests.codes.forbidden and reason in _REFUSED_REASONS):
        raise RefusedError(said)
    raise ListingError(f"Google Drive: {said}: {message or 'no reason given'}; nothing was changed.")


def _reason(answer: requests.Response) -> tuple[str, str]:
    try:
        error = answer.json()["error"]
        return str(error["errors"][0]["reason"])[:60], " ".join(str(error.get("message", ""))[:200].split())
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return "", ""


def _retry_after_s(answer: requests.Response) -> float | None:
    header = answer.headers.get("Retry-After", "")
    return float(header) if header.isascii() and header.isdigit() else None


def _pause_s(attempt: int, asked_for_s: float | None) -> float:
    """Twice as long each time, somewhat at random so that several do not come back together."""
    if asked_for_s is not None:
        return min(asked_for_s, _LAST_PAUSE_S)
    return min(_LAST_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt) * random.uniform(0.5, 1.0)


def _moment(header: str) -> datetime:
    try:
        return email.utils.parsedate_to_datetime(header).astimezone(UTC)
    except (ValueError, IndexError):
        return datetime.now(UTC)
