"""Bare loops without a framework: the floor under any reader, the product's extraction, and that on every core."""

from __future__ import annotations

import io
import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing.connection import Connection

import numpy as np
from PIL import Image

from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, Lexicon
from cardpicker.stage_c.imaging.hashing import phash64, sample
from cardpicker.stage_c.imaging.ocr import Layout, OcrEngine, tested_engine
from scripts.ops.stage_c_bench.cost import Cost
from scripts.ops.stage_c_bench.family import Family, watched
from scripts.ops.stage_c_bench.pictures import Picture

FLOOR_LONG_SIDE_PX = 1400
BAND = (0.04, 0.90, 0.55, 0.97)  #: Of the picture: where most frames print number, set code, language and artist.
ART = (0.07, 0.10, 0.93, 0.58)
BAND_HEIGHT_PX = 160


def floor(image: bytes, engine: OcrEngine) -> str:
    """Return what one draft decode, one recognition of a fixed band and one hash give."""
    with Image.open(io.BytesIO(image)) as picture:
        picture.draft("L", (FLOOR_LONG_SIDE_PX, FLOOR_LONG_SIDE_PX))
        gray = picture.convert("L")
    phash64(sample(_cut(gray, ART)))
    band = _cut(gray, BAND)
    pixels = np.asarray(band.resize((round(band.width * BAND_HEIGHT_PX / band.height), BAND_HEIGHT_PX)))
    dark_on_light = pixels if np.median(pixels) > 127 else 255 - pixels
    return engine.read(dark_on_light, layout=Layout.BLOCK).text


def _cut(gray: Image.Image, box: tuple[float, float, float, float]) -> Image.Image:
    left, top, right, bottom = box
    return gray.crop(
        (round(left * gray.width), round(top * gray.height), round(right * gray.width), round(bottom * gray.height))
    )


def measure_floor(pictures: Sequence[Picture], rounds: int) -> Cost:
    """Time the floor over ``pictures``."""
    engine = tested_engine("tesserocr")
    cost = Cost(stage="floor")

    def read(picture: Picture) -> None:
        floor(picture.body, engine)
        cost.calls.append(1)

    _in_turn(pictures, rounds, cost, read)
    return cost


def measure_compute(pictures: Sequence[Picture], lexicon: Lexicon, engine: str, rounds: int) -> Cost:
    """Time ``compute_card_evidence`` in this one process."""
    warm_up(lexicon, engine)
    cost = Cost(stage="compute" if engine == "tesserocr" else f"compute {engine}")
    _in_turn(pictures, rounds, cost, partial(_read, cost))
    return cost


def _read(cost: Cost, picture: Picture) -> None:
    count_calls(cost, compute_card_evidence(picture.body, picture.context))


def count_calls(cost: Cost, found: object) -> None:
    """Add the OCR calls of one result, or count it as refused."""
    if not isinstance(found, CardEvidence):
        cost.refused += 1
        return
    calls = found.readings.get("bottom_text", {}).get("ocr_calls")
    cost.calls.append(calls if isinstance(calls, int) else 0)


def _in_turn(pictures: Sequence[Picture], rounds: int, cost: Cost, read: Callable[[Picture], None]) -> None:
    read(pictures[0])  # What is loaded with the first picture is no picture's own cost.
    cost.calls.clear()
    cost.refused = 0
    started = time.monotonic()
    for _ in range(rounds):
        for picture in pictures:
            before = _cpu_s()
            read(picture)
            cost.cpu_s.append(_cpu_s() - before)
    cost.wall_s = time.monotonic() - started
    cost.cards = len(cost.cpu_s)


def _cpu_s() -> float:
    """Return the CPU seconds of this process and of the children that it has reaped, such as another engine's."""
    times = os.times()  # In ticks of 10 ms, too coarse for this process's own share.
    return time.process_time() + times.children_user + times.children_system


def measure_bare_loops(pictures: Sequence[Picture], lexicon: Lexicon, cores: int, cards: int) -> Cost:
    """Time ``compute_card_evidence`` in one bare process a core, all at once: what no conveyor can beat."""
    context = multiprocessing.get_context("forkserver")
    channels, processes = [], []
    for number in range(cores):
        ours, theirs = context.Pipe()
        share = range(number, cards, cores)
        process = context.Process(target=_loop, args=(theirs, pictures, lexicon, share), daemon=True)
        process.start()
        channels.append(ours)
        processes.append(process)
    for channel in channels:
        channel.recv()
    cost = Cost(stage="bare loops", cards=cards)
    with watched(Family()) as seen:
        for channel in channels:
            channel.send("start")
        for channel in channels:
            cpu_s, calls, refused = channel.recv()
            cost.cpu_s += cpu_s
            cost.calls += calls
            cost.refused += refused
    for process in processes:
        process.join()
    cost.wall_s, cost.shares_s, cost.others_cores = seen.wall_s, seen.shares_s, seen.others_cores
    return cost


def _loop(channel: Connection, pictures: Sequence[Picture], lexicon: Lexicon, share: range) -> None:
    warm_up(lexicon, "tesserocr")
    cost = Cost(stage="")
    _read(cost, pictures[0])
    cost.calls.clear()
    channel.send("ready")
    channel.recv()
    for number in share:
        before = time.process_time()
        _read(cost, pictures[number % len(pictures)])
        cost.cpu_s.append(time.process_time() - before)
    channel.send((cost.cpu_s, cost.calls, cost.refused))
