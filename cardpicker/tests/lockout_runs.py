"""A process of its own that dispatches cards of Google Drive until nothing is due or it is halted."""

from __future__ import annotations

import os
import sys


def main(slots_scope: str) -> None:
    """Dispatch batch after batch, and print each outcome's status."""
    import django

    django.setup()
    from dataclasses import replace

    from cardpicker.stage_c.hooks import ComputeParts
    from cardpicker.stage_c.settings import StageCSettings
    from cardpicker.stage_e.dispatch import DispatchOptions, dispatch_micro_batch
    from cardpicker.stage_e.outcomes import DispatchStatus
    from cardpicker.tests.stage_c_jobs import obey
    from cardpicker.tests.stage_e_support import options

    told = options(max_concurrent_dispatches=8, micro_batch_size=10)
    stage_c = StageCSettings(
        image_worker_url=os.environ["IMAGE_WORKER_URL"],
        google_image_rate=float(os.environ["GOOGLE_IMAGE_RATE"]),
        fetch_threads=int(os.environ.get("STAGE_C_FETCH_THREADS", "1")),
        compute_workers=1,
        pool_queue_depth=4,
    )
    chosen: DispatchOptions = replace(told, stage_c=stage_c, parts=ComputeParts(compute=obey))
    status = None
    while status in (None, DispatchStatus.COMPLETED):
        status = dispatch_micro_batch(trigger_reason=slots_scope, options=chosen).status
        print(status, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
