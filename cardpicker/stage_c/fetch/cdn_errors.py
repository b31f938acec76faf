"""Errors of the image CDN: whose they are, by the header that it sets on each.

Google's own are judged as any answer is. The CDN's own say nothing of a card, but for the few that are about its
address: a wrong setting, or another version of the CDN, must not look like a thousand missing images.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from cardpicker.stage_c.fetch.client import Answer
from cardpicker.stage_c.fetch.sniff import shown
from cardpicker.stage_c.outcomes import Failed, FetchOutcome, Gone, LockedOut, Throttled, Unusable, UnusableKind

HEADER = "x-image-cdn-error"
_UPSTREAM = "upstream-"
_LOCKOUT = "upstream-lockout"
_OWN_LIMIT = "rate-limited"
_ABOUT_THE_CARD = {
    "bad-identifier": UnusableKind.BAD_IDENTIFIER,
    "bad-resource-key": UnusableKind.BAD_IDENTIFIER,
    "too-large": UnusableKind.TOO_MANY_BYTES,
}


def judge_cdn(answer: Answer, otherwise: Callable[[Answer], FetchOutcome]) -> FetchOutcome:
    """Return what an answer of the image CDN means.

    Args:
        otherwise: judges what is no error of the CDN's own.
    """
    code = answer.headers.get(HEADER, "")[:60]
    if answer.status == 200 or code.startswith(_UPSTREAM):
        return LockedOut(detail=_said(code, answer)) if code == _LOCKOUT else otherwise(answer)
    if not code:
        return _judge_stranger(answer, otherwise(answer))
    if code == _OWN_LIMIT:
        pressure = otherwise(answer)
        retry_after_s = pressure.retry_after_s if isinstance(pressure, Throttled) else None
        return Throttled(detail="the image CDN's own limit is used up", retry_after_s=retry_after_s)
    if code in _ABOUT_THE_CARD:
        return Unusable(kind=_ABOUT_THE_CARD[code], detail=_said(code, answer))
    return Failed(detail=_said(code, answer))


def _judge_stranger(answer: Answer, outcome: FetchOutcome) -> FetchOutcome:
    """Judge an error without the header: whoever answered in the CDN's place knows nothing of the file."""
    if isinstance(outcome, Unusable) or (isinstance(outcome, Gone) and not outcome.refused):
        return Failed(
            detail=f"{answer.status} from {answer.target.shown}, which is not the image CDN: IMAGE_WORKER_URL?"
        )
    return outcome


def _said(code: str, answer: Answer) -> str:
    try:
        message = str(json.loads(answer.body)["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError, RecursionError):
        message = shown(answer.body)
    return f"the image CDN says {code}: {message}"
