"""Whole dispatches with a database: a scratch server, a catalog of varied pictures, and batch after batch in this process."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.ops.scratch_product import scratch_product
from scripts.ops.stage_c_bench.cost import Cost
from scripts.ops.stage_c_bench.family import Family, Watched, watched
from scripts.ops.stage_c_bench.image_server import VaryingImages
from scripts.ops.stage_c_bench.pictures import Picture

if TYPE_CHECKING:
    from cardpicker.models import Source

CREATED_AT_ONCE = 1_000
SAID_EVERY = 500


@dataclass(slots=True, kw_only=True)
class Rig:
    """A migrated scratch database with the printings in it, and where the images are."""

    database_pid: int
    web: VaryingImages
    source: Source
    serial: int = 0  #: The last picture that was handed out.


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a series of dispatches came to."""

    outcomes: dict[str, int] = field(default_factory=dict)  #: Cards by the name of their work's last outcome.
    batches: int = 0
    marks: list[tuple[int, float]] = field(default_factory=list)  #: Cards done, at a moment of the monotonic clock.

    def moment(self, cards: int) -> float:
        """Return when ``cards`` cards were done."""
        return next((at for done, at in self.marks if done >= cards), self.marks[-1][1])


@contextlib.contextmanager
def built_rig(folder: Path, printings: Path, cores: int) -> Iterator[Rig]:
    """Have the scratch database and the image server for the length of the block."""
    with scratch_product(printings, {"STAGE_C_COMPUTE_WORKERS": str(cores)}) as database_pid:
        from cardpicker.models import Source

        web = VaryingImages(folder)
        try:
            source = Source.objects.create(
                key="bench", name="bench", kind="http_manifest", location=f"{web.url}/list.csv"
            )
            yield Rig(database_pid=database_pid, web=web, source=source)
        finally:
            web.stop()


def measure_dispatch(rig: Rig, pictures: Sequence[Picture], cards: int) -> tuple[Cost, Watched, Progress]:
    """Dispatch ``cards`` new cards, one batch after the other, after a batch that makes the processes ready."""
    from cardpicker.stage_e.dispatch import default_options

    options = default_options()
    assert options.standing is not None
    cost = Cost(stage="dispatch", cards=cards)
    _add_cards(rig, pictures, options.settings.micro_batch_size)
    _dispatch_all(Progress())
    first = _add_cards(rig, pictures, cards)
    progress = Progress()
    try:
        with watched(Family(roles={"server": rig.web.pid, "database": rig.database_pid})) as seen:
            progress.marks.append((0, time.monotonic()))
            _dispatch_all(progress)
    finally:
        options.standing.close()
    _count(first, cost, progress)
    cost.wall_s, cost.shares_s, cost.others_cores = seen.wall_s, seen.shares_s, seen.others_cores
    return cost, seen, progress


def _add_cards(rig: Rig, pictures: Sequence[Picture], count: int) -> int:
    """Create ``count`` cards, each of which shows a picture in bytes of its own; return the first one's key."""
    from cardpicker.catalogue.name_key import name_key
    from cardpicker.models import Card

    first = 0
    for begin in range(0, count, CREATED_AT_ONCE):
        cards = []
        for _ in range(min(CREATED_AT_ONCE, count - begin)):
            rig.serial += 1
            picture = pictures[rig.serial % len(pictures)]
            cards.append(
                Card(
                    source=rig.source,
                    identifier=rig.web.address(rig.serial, picture.file),
                    name=picture.name,
                    name_key=name_key(picture.name),
                    image_version=str(rig.serial),
                    size=len(picture.body),
                    extension=Path(picture.file).suffix.strip("."),
                )
            )
        made = Card.objects.bulk_create(cards)
        first = first or made[0].pk
    return first


def _dispatch_all(progress: Progress) -> None:
    """Dispatch until nothing is due."""
    from cardpicker.stage_e.dispatch import dispatch_micro_batch
    from cardpicker.stage_e.outcomes import DispatchStatus

    done = 0
    while True:
        outcome = dispatch_micro_batch(trigger_reason="bench")
        if outcome.status is DispatchStatus.EMPTY:
            return
        if outcome.status is not DispatchStatus.COMPLETED:
            raise SystemExit(f"a dispatch ended as {outcome.status}: {outcome.detail}")
        done += outcome.batch_size
        progress.batches += 1
        progress.marks.append((done, time.monotonic()))
        if done % SAID_EVERY < outcome.batch_size:
            print(f"{time.strftime('%H:%M:%S')} {done:,} cards dispatched", file=sys.stderr, flush=True)


def _count(first: int, cost: Cost, progress: Progress) -> None:
    """Read OCR calls and outcomes back from the database."""
    from cardpicker.models import CardWork, ImageEvidence

    rows = ImageEvidence.objects.filter(card_id__gte=first)
    cost.calls = [int(calls or 0) for calls in rows.values_list("readings__bottom_text__ocr_calls", flat=True)]
    for name in CardWork.objects.filter(card_id__gte=first).values_list("last_outcome", flat=True):
        progress.outcomes[name] = progress.outcomes.get(name, 0) + 1
    cost.refused = cost.cards - progress.outcomes.get("stored", 0)
