#!/usr/bin/env python
"""A Drive of many files into the database: memory, time, and what is written: ``bench_sources.py --files 50000``.

A Google on loopback lists the files. Each sync runs in a process of its own: one whose last page fails, the first that
succeeds, one again, and the first once more under tracemalloc. Works in a scratch database on the server of the
environment, and drops it. Exit code 1 when a failed page or the second sync wrote a card, or memory is out of bounds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil
import psycopg2

from scripts.ops.bench_stage_d import manage, scratch_database

MAX_BYTES_PER_FILE = 1_000  #: Of what a sync holds at its peak, beyond what it holds for a single page.
FEW_FILES = 1_000
SETTLE_S = 30.0
#: Every row of every card, by its place and the transaction that wrote it.
FINGERPRINT = (
    "SELECT count(*), coalesce(sum(hashtextextended(ctid::text || xmin::text || id, 0)), 0) FROM cardpicker_card"
)
WRITTEN = "SELECT relname, n_tup_ins, n_tup_upd, n_tup_del FROM pg_stat_user_tables ORDER BY relname"
Written = dict[str, tuple[int, int, int]]


def sync_once(google_url: str, traced: bool, found: multiprocessing.Queue[dict[str, Any]]) -> None:
    """Sync the drive; runs in a process of its own and tells what became of it and what it took."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from cardpicker.models import Source
    from cardpicker.sources import registry
    from cardpicker.sources.drive_api import DriveApi
    from cardpicker.sources.drive_auth import ApiKey
    from cardpicker.sources.errors import SourceError
    from cardpicker.sources.google_drive import GoogleDrive
    from cardpicker.sources.sync import sync_source
    from cardpicker.tests.fake_google import API_KEY
    from cardpicker.tests.fake_google import ROOT as FOLDER

    kind = GoogleDrive(lambda: DriveApi(credential=ApiKey(API_KEY), url=google_url, pause=lambda _: None))
    registry.KINDS = (kind,)
    source, _ = Source.objects.get_or_create(key="drive", defaults={"kind": kind.key, "location": FOLDER})
    if traced:
        tracemalloc.start()
    with watched_memory() as memory:
        started = time.monotonic()
        try:
            said: dict[str, int | str] = {name: count for name, count in sync_source(source).counts() if count}
        except SourceError as error:
            said = {"error": str(error)}
        elapsed_s = time.monotonic() - started
    if traced:
        memory["traced_peak_mb"] = round(tracemalloc.get_traced_memory()[1] / 1e6, 1)
    found.put({"said": said, "elapsed_s": round(elapsed_s, 2), **memory})


@contextlib.contextmanager
def watched_memory() -> Iterator[dict[str, float]]:
    """Fill in by how much this process grew at its largest."""
    process, over = psutil.Process(), threading.Event()
    before = process.memory_info().rss
    peak = before

    def watch() -> None:
        nonlocal peak
        while not over.wait(0.02):
            peak = max(peak, process.memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    memory: dict[str, float] = {}
    yield memory
    over.set()
    thread.join()
    unit = 1 if sys.platform == "darwin" else 1024
    memory["grew_by_mb"] = round((peak - before) / 1e6, 1)
    memory["peak_rss_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)


def in_a_process(google_url: str, *, traced: bool = False) -> dict[str, Any]:
    """Run one sync and return what it told."""
    context = multiprocessing.get_context("spawn")
    found: multiprocessing.Queue[dict[str, Any]] = context.Queue()
    child = context.Process(target=sync_once, args=(google_url, traced, found))
    child.start()
    told = found.get(timeout=1_800)
    child.join(30)
    return told


class Watch:
    """Looks at a database from outside: which rows are there, and what was ever written."""

    def __init__(self, url: str) -> None:
        self._session = psycopg2.connect(url)
        self._session.autocommit = True

    def close(self) -> None:
        """Let the database be dropped."""
        self._session.close()

    def cards(self) -> tuple[int, int]:
        """Return the number of cards, and what changes when any row of one is written."""
        (found,) = self._rows(FINGERPRINT)
        return int(found[0]), int(found[1])

    def written(self) -> Written:
        """Return rows inserted, updated and deleted so far, by table, once every other session has told."""
        deadline = time.monotonic() + SETTLE_S
        others = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        while self._rows(f"{others} AND backend_type = 'client backend'") and time.monotonic() < deadline:
            time.sleep(0.05)
        return {name: (inserted, updated, deleted) for name, inserted, updated, deleted in self._rows(WRITTEN)}

    def _rows(self, statement: str) -> list[Any]:
        with self._session.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()


def difference(before: Written, after: Written) -> dict[str, str]:
    """Return what was written between two looks, by table; nothing for a table that was let alone."""
    changes = {
        name.removeprefix("cardpicker_"): [now - then for now, then in zip(counts, before[name], strict=True)]
        for name, counts in after.items()
    }
    return {name: "+{} ~{} -{}".format(*counts) for name, counts in sorted(changes.items()) if any(counts)}


def measure(url: str, files: int) -> dict[str, Any]:
    """Sync a drive of ``files`` into the empty database at ``url``, again and again, and return every figure."""
    from cardpicker.tests.fake_google import ROOT as FOLDER
    from cardpicker.tests.fake_google import fake_google, refusal

    with fake_google() as google, contextlib.closing(Watch(url)) as watch:
        google.many[FOLDER] = FEW_FILES
        few = in_a_process(google.url, traced=True)
        google.many[FOLDER] = files
        last_page = str((files - 1) // google.page_files * google.page_files)
        usual = google.before
        google.before = lambda asked: (
            refusal(500, "backendError") if asked.query.get("pageToken") == last_page else usual(asked)
        )
        cards, written = watch.cards(), watch.written()
        failed = in_a_process(google.url)
        failed |= {"wrote": difference(written, watch.written()), "cards_untouched": watch.cards() == cards}
        google.before = usual
        first = in_a_process(google.url, traced=True)
        cards, written = watch.cards(), watch.written()
        second = in_a_process(google.url)
        second |= {"wrote": difference(written, watch.written()), "cards_untouched": watch.cards() == cards}
    held = (first["traced_peak_mb"] - few["traced_peak_mb"]) * 1e6 / max(1, files - FEW_FILES)
    return {
        "files": files,
        "failed_last_page": failed,
        "first_traced": first,
        "second": second,
        "bytes_held_per_file": round(held),
        "cards": cards[0],
    }


def main() -> int:
    """Measure once; one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=50_000)
    arguments = parser.parse_args()
    with scratch_database() as url:
        manage(url, "migrate", "--verbosity", "0")
        os.environ["CARDPICKER_DATABASE_URL"] = url
        result = measure(url, arguments.files)
    print(json.dumps(result, indent=2))
    sound = (
        result["failed_last_page"]["cards_untouched"]
        and "error" in result["failed_last_page"]["said"]
        and result["second"]["cards_untouched"]
        and set(result["second"]["wrote"]) <= {"source"}
        and result["cards"] == arguments.files
        and result["bytes_held_per_file"] <= MAX_BYTES_PER_FILE
    )
    return 0 if sound else 1


if __name__ == "__main__":
    sys.exit(main())
