"""What an answer means: by status, reason and first bytes, never by status alone.

Pressure (a rate, a quota per user) is Throttled and no failure; a refusal of us is LockedOut; a refusal of one file is
Gone. A refusal without a reason is Gone with ``refused``, since only the next files tell which of the two it is.
"""

from __future__ import annotations

import email.utils
import hashlib
import json
import math
import re
from datetime import UTC, datetime

from cardpicker.stage_c.fetch.client import Answer
from cardpicker.stage_c.fetch.sniff import shown, text_kind
from cardpicker.stage_c.outcomes import (
    Failed,
    Fetched,
    FetchOutcome,
    Gone,
    LockedOut,
    Throttled,
    Unusable,
    UnusableKind,
)

MAX_RETRY_AFTER_S = 3_600.0
PRESSURE_STATUSES = frozenset({429, 503, 509})
MISSING_STATUSES = frozenset({404, 410, 451})
REFUSAL_STATUSES = frozenset({401, 403})

_UNUSUAL_TRAFFIC = re.compile(rb"unusual traffic|/sorry/index|detected automated (queries|requests)", re.IGNORECASE)
_QUOTA_PAGE = re.compile(rb"quota exceeded|too many users have (viewed|downloaded)", re.IGNORECASE)
_SIGN_IN_URL = re.compile(r"//accounts\.google\.com[/:]|/(ServiceLogin|sign-?in|login)\b|/sorry/", re.IGNORECASE)

#: Reasons that Google's APIs give with a 403.
_PRESSURE_REASONS = frozenset({"userRateLimitExceeded", "rateLimitExceeded", "dailyLimitExceeded", "quotaExceeded"})
_LATER_REASONS = frozenset({"downloadQuotaExceeded", "sharingRateLimitExceeded"})
_THIS_FILE_REASONS = frozenset({"insufficientFilePermissions", "cannotDownloadAbusiveFile", "cannotDownloadFile"})


def classify(answer: Answer) -> FetchOutcome:
    """Return what an answer means; a redirect that was not followed counts as a failure."""
    where = f"{answer.status} from {answer.target.shown}"
    if answer.status == 200:
        return _classify_success(answer)
    if _UNUSUAL_TRAFFIC.search(answer.body):
        return LockedOut(detail=f"unusual traffic page, {where}")
    if answer.status in PRESSURE_STATUSES:
        return Throttled(detail=where, retry_after_s=retry_after_s(answer.headers.get("retry-after", "")))
    if answer.status in REFUSAL_STATUSES:
        return _classify_refusal(answer, where)
    if answer.status in MISSING_STATUSES:
        return Gone(detail=where)
    if answer.status in (400, 414):
        return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=f"{where}: {shown(answer.body)}")
    return Failed(detail=f"{where}: {shown(answer.body)}")


def is_sign_in(url: str) -> bool:
    """Whether a redirect leads to a sign-in page or to Google's page for machines."""
    return _SIGN_IN_URL.search(url) is not None


def check_body(body: bytes, where: str) -> Unusable | Fetched:
    """Return the bytes as fetched unless they are empty or plainly text."""
    if not body:
        return Unusable(kind=UnusableKind.EMPTY, detail=f"no bytes from {where}")
    kind = text_kind(body)
    if kind is not None:
        detail = f"not an image: {kind} from {where}: {shown(body)}"
        return Unusable(kind=UnusableKind.NOT_AN_IMAGE, detail=detail)
    return Fetched(body=body, sha256=hashlib.sha256(body).hexdigest())


def check_digests(fetched: Fetched, expected_sha256: str | None, expected_md5: str | None) -> Fetched | Failed:
    """Return the bytes unless they are others than the listing promised."""
    if expected_sha256:
        same = fetched.sha256 == expected_sha256.lower()
    elif expected_md5:
        same = hashlib.md5(fetched.body, usedforsecurity=False).hexdigest() == expected_md5.lower()
    else:
        same = True
    return fetched if same else Failed(detail="the file changed since its source was synced: run update_database")


def retry_after_s(header: str) -> float | None:
    """Return a Retry-After header as seconds from now, at most an hour; None when it says nothing usable."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            moment = email.utils.parsedate_to_datetime(header)
        except (ValueError, IndexError):
            return None
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        seconds = (moment - datetime.now(UTC)).total_seconds()
    if not math.isfinite(seconds):
        return None
    return min(max(0.0, seconds), MAX_RETRY_AFTER_S)


def _classify_success(answer: Answer) -> FetchOutcome:
    checked = check_body(answer.body, answer.target.shown)
    if isinstance(checked, Fetched) or not answer.body:
        return checked
    if _UNUSUAL_TRAFFIC.search(answer.body):
        return LockedOut(detail=f"unusual traffic page, 200 from {answer.target.shown}")
    if _QUOTA_PAGE.search(answer.body):
        return Failed(detail=f"this file's download quota is spent, 200 from {answer.target.shown}")
    return checked


def _classify_refusal(answer: Answer, where: str) -> FetchOutcome:
    reason = _reason(answer.body)
    detail = f"{where}: {reason or 'no reason given'}"
    if reason in _PRESSURE_REASONS:
        return Throttled(detail=detail, retry_after_s=retry_after_s(answer.headers.get("retry-after", "")))
    if reason in _LATER_REASONS:
        return Failed(detail=detail)
    return Gone(detail=detail, refused=reason not in _THIS_FILE_REASONS)


def _reason(body: bytes) -> str:
    """Return the reason in the JSON error of a Google API, or an empty string."""
    try:
        error = json.loads(body)["error"]
        return str(error["errors"][0]["reason"] if error.get("errors") else error.get("status", ""))[:60]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return ""
