"""The conveyor on all cores, fed by an image server on loopback: Stage C without a database."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from urllib.parse import urlsplit

from cardpicker.stage_c import conveyor
from cardpicker.stage_c.compute import warm_up
from cardpicker.stage_c.evidence import Lexicon
from cardpicker.stage_c.fetch.fetcher import ImageFetcher, Trust
from cardpicker.stage_c.outcomes import Fetched
from cardpicker.stage_c.settings import StageCSettings
from scripts.ops.stage_c_bench import timed
from scripts.ops.stage_c_bench.cost import Cost
from scripts.ops.stage_c_bench.family import Family, Watched, watched
from scripts.ops.stage_c_bench.image_server import VaryingImages
from scripts.ops.stage_c_bench.loops import count_calls
from scripts.ops.stage_c_bench.pictures import Picture


def measure_conveyor(
    pictures: Sequence[Picture], lexicon: Lexicon, web: VaryingImages, settings: StageCSettings, cards: int
) -> tuple[Cost, Watched]:
    """Convey ``cards`` cards; the clock starts when a few have passed and all processes are ready."""
    warm = 2 * settings.queue_depth
    cost = Cost(stage="conveyor", cards=cards)
    trust = Trust(private_hosts=frozenset({str(urlsplit(web.url).hostname)}))
    sizes = conveyor.ConveyorSettings(
        fetch_threads=settings.fetch_threads,
        compute_workers=settings.compute_workers,
        queue_depth=settings.queue_depth,
        start_method=settings.start_method,
        preload=(timed.__name__,),
        tasks_per_worker=settings.tasks_per_worker,
        worker_rss_mb=settings.worker_rss_mb,
    )
    with contextlib.closing(ImageFetcher(settings)) as fetcher:

        def fetch(serial: int) -> conveyor.Payload | str:
            picture = pictures[serial % len(pictures)]
            arrived = fetcher.fetch(web.address(serial, picture.file), trust=trust)
            if not isinstance(arrived, Fetched):
                return repr(arrived)
            return conveyor.Payload(body=arrived.body, context=picture.context)

        with contextlib.closing(
            conveyor.run(
                range(warm + cards),
                fetch,
                timed.timed_compute,
                settings=sizes,
                initializer=warm_up,
                initargs=(lexicon, settings.ocr_engine),
            )
        ) as results:
            for _ in range(warm):
                next(results)
            with watched(Family(roles={"server": web.pid})) as seen:
                for result in results:
                    if not isinstance(result.outcome, conveyor.Computed):
                        raise SystemExit(f"card {result.item}: {result.outcome}")
                    cost.cpu_s.append(result.outcome.value.cpu_s)
                    count_calls(cost, result.outcome.value.found)
    cost.wall_s, cost.shares_s, cost.others_cores = seen.wall_s, seen.shares_s, seen.others_cores
    return cost, seen
