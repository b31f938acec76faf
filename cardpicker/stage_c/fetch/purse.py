"""The permits that one run holds for a destination: taken several at a time, and spent one by one.

Where the database does not give any, for want of itself, its clock or the row's lock, the run paces itself at a share
of the rate that is safe with many processes beside it. That is slower than any permit, never faster.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass

from django.db import Error

from cardpicker.stage_c.fetch.limiter import take

logger = logging.getLogger(__name__)

#: Enough that the database is asked less than once in five images, few enough that a stop wastes little.
PERMITS_AT_ONCE = 8
#: Of the whole rate, for each process that has to do without the database: right for up to so many of them.
SAFE_SHARE = 1 / 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Permit:
    """Leave to fetch one image."""

    starts_at: float  #: On the monotonic clock.
    is_probe: bool = False
    is_granted: bool = True  #: No: there was none to be had; the moment is when there may be one.


class Purse:
    """The permits of one destination, for the thread that coordinates a run."""

    def __init__(self, destination: str, rate_per_s: float, max_wait_s: float) -> None:
        self._destination = destination
        self._rate_per_s = rate_per_s
        self._max_wait_s = max_wait_s
        self._kept: deque[Permit] = deque()
        self._come_back_at = 0.0
        self._last_at = 0.0
        self._widening = 1.0

    def next(self, wanted: int) -> Permit:
        """Return a permit; ``wanted`` are needed all in all, this one included."""
        if not self._kept and time.monotonic() >= self._come_back_at:
            self._fill(max(1, min(wanted, PERMITS_AT_ONCE)))
        if not self._kept:
            return Permit(starts_at=self._come_back_at, is_granted=False)
        permit = self._kept.popleft()
        self._last_at = max(self._last_at, permit.starts_at)
        return permit

    def drop(self) -> None:
        """Give up what was taken before the destination asked for patience."""
        self._kept.clear()

    def _fill(self, count: int) -> None:
        try:
            grant = take(self._destination, count, self._rate_per_s, max_wait_s=self._max_wait_s)
        except Error as error:
            logger.warning(
                "no shared permits for %s: pacing alone (%s)", self._destination, " ".join(str(error).split())
            )
            self._kept.append(Permit(starts_at=max(time.monotonic(), self._last_at + self._safe_interval_s())))
            return
        now = time.monotonic()  # After the answer: a permit may be used late, but not early.
        self._widening = grant.widening
        self._kept.extend(Permit(starts_at=now + wait_s, is_probe=grant.is_probe) for wait_s in grant.waits_s)
        if not self._kept:
            self._come_back_at = now + grant.come_back_s

    def _safe_interval_s(self) -> float:
        return self._widening / (self._rate_per_s * SAFE_SHARE)
