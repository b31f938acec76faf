"""Stage C of one batch of cards: what is known of them, the fetch of each, and the batch that is settled card by card."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from cardpicker.catalogue.lexicon import artists_by_name_key, load_lexicon
from cardpicker.stage_c.batch import StageCBatch
from cardpicker.stage_c.departures import Departures
from cardpicker.stage_c.evidence import ComputeContext
from cardpicker.stage_c.hooks import ComputeParts, StageCHooks, StageCReport, extraction_parts
from cardpicker.stage_c.outcomes import LeaseLostError
from cardpicker.stage_c.persist import Settle
from cardpicker.stage_c.plan import load_plans
from cardpicker.stage_c.settings import StageCSettings

__all__ = ["LeaseLostError", "Settle", "StageCHooks", "StageCReport", "run_stage_c"]


def run_stage_c(
    card_ids: Sequence[int],
    *,
    run_id: str,
    settings: StageCSettings,
    hooks: StageCHooks,
    parts: ComputeParts | None = None,
) -> StageCReport:
    """Give every card of the batch current evidence, or an outcome that says why it has none.

    Args:
        parts: what the compute processes run; None: the extractors.

    Raises:
        WorkerInitError: no compute process could be made ready, for want of an OCR engine for example.
    """
    plans = load_plans(card_ids, as_unread=hooks.rereads)
    fetched_names = {plan.name_key for plan in plans if not plan.is_current}
    contexts = {key: ComputeContext(artists=artists) for key, artists in artists_by_name_key(fetched_names).items()}
    with contextlib.closing(Departures(settings, contexts)) as departures:
        batch = StageCBatch(run_id, card_ids, settings, hooks, departures)
        batch.settle_without_fetch(plans)
        while departures.waiting and not batch.is_over():
            # A second round only for those that hoped to follow a representative that failed.
            parts = parts or extraction_parts(settings.ocr_engine, load_lexicon())
            batch.convey(parts)
        return batch.close()
