"""One request of a command, under the shared budget of its host: it waits for its permit, and tells what came of it."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable

from cardpicker.stage_c.fetch.destinations import destination_of, rate_per_s
from cardpicker.stage_c.fetch.limiter import slow_down
from cardpicker.stage_c.fetch.purse import Purse
from cardpicker.stage_c.settings import StageCSettings

MAX_WAIT_S = 60.0
PRESSURE_STATUSES = frozenset({429, 503})


class BudgetSpentError(Exception):
    """No permit is to be had soon; the text is one line for the operator."""


def await_permit(url: str, settings: StageCSettings, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until ``url`` may be asked; at once where its host has no budget.

    Raises:
        BudgetSpentError: the host asked for more patience than a command has.
    """
    destination = _destination(url)
    if not destination:
        return
    permit = Purse(destination, rate_per_s(destination, settings), MAX_WAIT_S).next(1)
    wait_s = max(0.0, permit.starts_at - time.monotonic())
    if not permit.is_granted:
        raise BudgetSpentError(f"{destination} asked for patience: try again in {wait_s:.0f} s.")
    sleep(wait_s)


def tell_status(url: str, status: int, retry_after_s: float | None) -> None:
    """Let everybody who asks the same host know that it wants to be asked more slowly, when it does."""
    destination = _destination(url)
    if destination and status in PRESSURE_STATUSES:
        slow_down(destination, retry_after_s)


def _destination(url: str) -> str:
    if not url.lower().startswith(("http://", "https://")):
        return ""
    try:
        return destination_of((urllib.parse.urlsplit(url).hostname or "").lower())
    except ValueError:
        return ""
