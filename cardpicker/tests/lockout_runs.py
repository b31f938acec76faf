"""A process of its own that dispatches cards of Google Drive until none waits for its turn, or it is halted."""

from __future__ import annotations

import os
import sys
import time

#: Between two looks at what others have taken, or what was throttled and waits.
POLL_S = 0.2


def main(reason: str) -> None:
    """Dispatch batch after batch, and print each outcome's status."""
    import django

    django.setup()
    from dataclasses import replace

    from cardpicker.models import CardWork
    from cardpicker.stage_c.hooks import ComputeParts
    from cardpicker.stage_c.settings import StageCSettings
    from cardpicker.stage_e.dispatch import dispatch_micro_batch
    from cardpicker.stage_e.outcomes import DispatchStatus
    from cardpicker.tests.stage_c_jobs import obey
    from cardpicker.tests.stage_e_support import options

    told = options(max_concurrent_dispatches=8, micro_batch_size=10, fetch_failure_rate_ceiling=1.0)
    stage_c = StageCSettings(
        image_worker_url=os.environ["IMAGE_WORKER_URL"],
        google_image_rate=float(os.environ["GOOGLE_IMAGE_RATE"]),
        fetch_threads=int(os.environ.get("STAGE_C_FETCH_THREADS", "1")),
        compute_workers=1,
        pool_queue_depth=4,
    )
    chosen = replace(told, stage_c=stage_c, parts=ComputeParts(compute=obey))
    while True:
        status = dispatch_micro_batch(trigger_reason=reason, options=chosen).status
        print(status, flush=True)
        if status is DispatchStatus.EMPTY:
            waiting = CardWork.objects.filter(due_at__isnull=False, attempts=0)
            if not waiting.exists() and not CardWork.objects.filter(lease_owner__isnull=False).exists():
                return
            time.sleep(POLL_S)
        elif status is not DispatchStatus.COMPLETED:
            return


if __name__ == "__main__":
    main(sys.argv[1])
