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

    from django.db.models import Q

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
    # Throttled and deferred cards get their attempt back; one that failed is tried again, but not waited for.
    first_tries = Q(due_at__isnull=False, attempts=0) | Q(lease_owner__isnull=False, attempts=1)
    put_off = Q(last_outcome__in=("throttled", "deferred"), due_at__isnull=False)
    while True:
        status = dispatch_micro_batch(trigger_reason=reason, options=chosen).status
        print(status, flush=True)
        if status not in (DispatchStatus.COMPLETED, DispatchStatus.EMPTY):
            return
        if not CardWork.objects.filter(first_tries | put_off).exists():
            return
        if status is DispatchStatus.EMPTY:
            time.sleep(POLL_S)


if __name__ == "__main__":
    main(sys.argv[1])
