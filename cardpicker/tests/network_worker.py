"""A worker on another host: dispatches the card whose number it is sent, and says when and how that ended."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings

from cardpicker.tests.cluster import environment, eventually


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a dispatch ended: its status or its error, and when by the clock that all processes share."""

    said: str
    at: float


class NetworkWorker:
    """The worker as the test holds it, until the block ends."""

    def __init__(self, log: Path, *, inside: Sequence[str], **extra: str) -> None:
        self.log = log
        self._output, self._errors = log.open("wb"), log.with_suffix(".errors").open("wb")
        self._asked = 0
        self._process = subprocess.Popen(
            [*inside, sys.executable, "-m", "cardpicker.tests.network_worker"],
            cwd=settings.BASE_DIR,
            env=environment(DJANGO_SETTINGS_MODULE="config.settings", **extra),
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._errors,
        )

    def __enter__(self) -> NetworkWorker:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._output.close()
        self._errors.close()

    @property
    def pid(self) -> int:
        """The process, which is the same as long as the worker is usable."""
        assert self._process.poll() is None, self.log.read_text()
        return self._process.pid

    def dispatch(self, card_id: int) -> None:
        """Ask for a dispatch of one card, and do not wait."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{card_id}\n".encode())
        self._process.stdin.flush()
        self._asked += 1

    def ended(self) -> Ended | None:
        """Return how the last dispatch ended, once it has."""
        lines = self.log.read_text().splitlines()
        return Ended(**json.loads(lines[-1])) if len(lines) == self._asked else None

    def wait(self, within_s: float) -> Ended:
        """Return how the last dispatch ended, when it has."""
        ended: Ended = eventually(self.ended, "the dispatch to end", within_s)
        return ended


def main() -> None:
    """Dispatch the cards that standard input names, one after the other."""
    import django

    django.setup()
    from cardpicker.stage_e.dispatch import dispatch_micro_batch
    from cardpicker.tests.stage_e_support import options

    for line in sys.stdin:
        said: Any
        try:
            said = dispatch_micro_batch([int(line)], batch_size=1, options=options(max_concurrent_dispatches=1)).status
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        print(json.dumps({"said": str(said), "at": time.monotonic()}), flush=True)


if __name__ == "__main__":
    main()
