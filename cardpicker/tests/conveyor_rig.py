"""What the conveyor's tests share: settings, the count of what is in flight, and who is still alive."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import psutil
from django.conf import settings as site

from cardpicker.stage_c.conveyor import ConveyorOutcome, ConveyorSettings, Payload, run

START_METHODS = ("fork", "forkserver")
PATIENCE_S = 60.0
POLL_S = 0.01
#: The fork server loads these once; a child would import them each time, because pytest is the main module here.
SETTINGS = ConveyorSettings(
    fetch_threads=2,
    compute_workers=2,
    queue_depth=4,
    preload=("pytest", "pytest.__main__"),
    compute_timeout_s=PATIENCE_S,
)


def settings_for(start_method: str, **changes: Any) -> ConveyorSettings:
    """Return small pools of one start method."""
    return replace(SETTINGS, start_method=start_method, **changes)


def run_owner(start_method: str, how: str) -> subprocess.CompletedProcess[str]:
    """Run a program that owns a conveyor to its end."""
    return subprocess.run(
        [sys.executable, "-m", "cardpicker.tests.conveyor_owner", start_method, how],
        cwd=site.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def to_payload(context: Any) -> Payload:
    """Be a fetch: the item is what compute is told."""
    return Payload(body=b"image", context=context)


def outcomes(
    items: list[Any], compute: Callable[[bytes, Any], Any], settings: ConveyorSettings, **arguments: Any
) -> list[ConveyorOutcome]:
    """Run all items and return what became of each."""
    return [result.outcome for result in run(items, to_payload, compute, settings=settings, **arguments)]


@dataclass(slots=True)
class Permits:
    """Counts items from their pull to the end of their storage, as the consumer sees it."""

    pulled: int = 0
    stored: int = 0
    peak: int = 0

    def pull(self, count: int) -> Iterator[int]:
        """Yield ``count`` items."""
        for number in range(count):
            self.pulled += 1
            self.peak = max(self.peak, self.pulled - self.stored)
            yield number


def wait_until(condition: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for ``condition``, at most ``patience_s``."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {patience_s:g} s for: {what}"
        time.sleep(POLL_S)


def compute_processes() -> set[int]:
    """Return the processes under this one, without the fork server and the resource tracker, which serve others too."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            is_ours = process.ppid() == psutil.Process().pid
            line = " ".join(process.cmdline())
            if not (is_ours and ("forkserver import main" in line or "resource_tracker import main" in line)):
                found.add(process.pid)
    return found


def fetch_threads() -> list[str]:
    """Return the names of the fetch threads that are alive."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("fetch")]
