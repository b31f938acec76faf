"""A process that dispatches one batch and is killed at a named point of it: ``python -m cardpicker.tests.dying_worker POINT``.

The points are public functions of the pipeline; the kill is SIGKILL, of which no code of ours hears.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any
from unittest import mock

#: By point: the module, what in it is called at that point, and whether death comes before it does anything.
POINTS = {
    "after the slot": ("cardpicker.stage_e.envelope", "judge", True),
    "after the claim": ("cardpicker.stage_e.ledger", "open_run", True),
    "after the ledger row": ("cardpicker.stage_e.dispatch", "run_stage_c", True),
    "in mid-fetch": ("cardpicker.stage_e.batch.Batch", "on_fetch", True),
    "in mid-computation": ("cardpicker.stage_e.batch.Batch", "on_tick", True),
    "before evidence is stored": ("cardpicker.stage_e.batch.Batch", "may_write", True),
    "while evidence is stored": ("cardpicker.stage_e.batch.Batch", "settle", False),
    "before the vote": ("cardpicker.stage_e.dispatch", "run_stage_d", True),
    "after the vote": ("cardpicker.stage_e.work", "close_done", True),
    "before the row ends": ("cardpicker.stage_e.ledger", "close_run", True),
    "while the row ends": ("cardpicker.stage_e.ledger", "close_run", False),
    "after the row has ended": ("cardpicker.stage_e.work", "is_due", True),
}


def main(point: str) -> None:
    """Dispatch, and die on the way."""
    import django

    django.setup()
    from cardpicker.stage_e.dispatch import dispatch_micro_batch
    from cardpicker.tests.stage_e_support import options

    where, name, comes_before = POINTS[point]
    owner = _owner(where)
    original = getattr(owner, name)

    def dying(*arguments: Any, **named: Any) -> None:
        if not comes_before:
            original(*arguments, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    with mock.patch.object(owner, name, dying):
        dispatch_micro_batch(options=options(max_concurrent_dispatches=1))
    raise AssertionError(f"the batch ended without coming to the point {point!r}")


def _owner(where: str) -> Any:
    try:
        return importlib.import_module(where)
    except ModuleNotFoundError:
        module, _, kind = where.rpartition(".")
        return getattr(importlib.import_module(module), kind)


if __name__ == "__main__":
    main(sys.argv[1])
