#!/usr/bin/env python
"""Stage D on synthetic evidence: cards/s in bulk, ms a card in batches as the stream has them, consensus over many votes.

Works in a scratch database of its own on the server of the environment, and drops it. On a shared host the clock says
little: CPU seconds of both sides are given too, and what they would come to on two cores that are free.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import psutil
import psycopg2

CORES = 2
SAMPLE_S = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a piece of work took."""

    wall_s: float
    client_cpu_s: float
    server_cpu_s: float

    def told(self, cards: int) -> dict[str, float]:
        """Return the figures, and those per card."""
        cpu_s = self.client_cpu_s + self.server_cpu_s
        return {
            "wall_s": round(self.wall_s, 2),
            "client_cpu_s": round(self.client_cpu_s, 2),
            "server_cpu_s": round(self.server_cpu_s, 2),
            "cards_per_s": round(cards / self.wall_s, 1),
            "cpu_ms_per_card": round(1000 * cpu_s / cards, 3),
            f"cards_per_s_on_{CORES}_free_cores": round(CORES * cards / cpu_s, 1),
        }


@contextlib.contextmanager
def scratch_database() -> Iterator[str]:
    """Have an empty database for the length of the block; yields its URL."""
    url = os.environ.get("CARDPICKER_DATABASE_URL")
    if not url:
        sys.exit("Set CARDPICKER_DATABASE_URL: the scratch database is made on that server.")
    name = f"bench_stage_d_{uuid.uuid4().hex[:8]}"
    with contextlib.closing(psycopg2.connect(url)) as admin:
        admin.autocommit = True
        admin.cursor().execute(f'CREATE DATABASE "{name}"')
        try:
            yield urllib.parse.urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            admin.cursor().execute(f'DROP DATABASE "{name}" WITH (FORCE)')


class Clock:
    """CPU seconds of this process with all its descendants, and of the server's processes that serve one database.

    Both are seen from outside, since neither reports to this process when it ends; the server must run on this host.
    """

    def __init__(self, url: str) -> None:
        self._session = psycopg2.connect(url)
        self._session.autocommit = True
        self._ours: dict[tuple[int, float], float] = {}
        self._servers: dict[tuple[int, float], float] = {}

    def read(self) -> tuple[float, float]:
        """Return the seconds so far of every process seen so far: ours, the server's."""
        with self._session.cursor() as cursor:
            cursor.execute("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")
            pids = [pid for (pid,) in cursor.fetchall()]
        me = psutil.Process()
        self._note(self._ours, [me.pid, *(child.pid for child in me.children(recursive=True))])
        self._note(self._servers, pids)
        return sum(self._ours.values()), sum(self._servers.values())

    @staticmethod
    def _note(seen: dict[tuple[int, float], float], pids: list[int]) -> None:
        for pid in pids:
            with contextlib.suppress(psutil.Error):
                process = psutil.Process(pid)
                spent = process.cpu_times()
                seen[pid, process.create_time()] = spent.user + spent.system

    def close(self) -> None:
        """Let the database be dropped."""
        self._session.close()


def measured(clock: Clock, work: Callable[[], object]) -> Cost:
    """Do ``work`` and return what it took, children included."""
    over = threading.Event()

    def sample() -> None:
        while not over.wait(SAMPLE_S):
            clock.read()

    sampler = threading.Thread(target=sample)
    started, (client, server) = time.monotonic(), clock.read()
    sampler.start()
    try:
        work()
    finally:
        wall = time.monotonic() - started
        over.set()
        sampler.join()
    client_after, server_after = clock.read()
    return Cost(wall_s=wall, client_cpu_s=client_after - client, server_cpu_s=server_after - server)


def manage(url: str, *arguments: str) -> None:
    """Run a command on the scratch database; ends the benchmark when it fails."""
    environment = {**os.environ, "CARDPICKER_DATABASE_URL": url}
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed: {done.stderr.strip()[-2000:]}")
    print(f"# {(done.stdout.strip().splitlines() or [''])[-1]}", file=sys.stderr)


def bench_batches(clock: Clock, batches: int, size: int) -> dict[str, object]:
    """Judge fresh cards in batches as the stream does."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    from cardpicker.models import Card
    from cardpicker.stage_d.run import run_stage_d

    # From the far end, so that the bulk run still has all but these to do.
    ids = list(Card.objects.order_by("-pk").values_list("pk", flat=True)[: (batches + 5) * size])
    parts = [sorted(ids[at : at + size]) for at in range(0, len(ids), size)]
    queries: set[int] = set()
    for part in parts[:5]:
        with CaptureQueriesContext(connection) as captured:
            run_stage_d(part, run_id="bench")
        queries.add(len(captured))
    times: list[float] = []

    def work() -> None:
        for part in parts[5:]:
            started = time.perf_counter()
            run_stage_d(part, run_id="bench")
            times.append(time.perf_counter() - started)

    cost = measured(clock, work)
    per_card = sorted(1000 * each / size for each in times)
    return {
        "bench": f"batches of {size}",
        "batches": batches,
        "median_ms_per_card": round(per_card[len(per_card) // 2], 3),
        "p90_ms_per_card": round(per_card[int(len(per_card) * 0.9)], 3),
        "queries_per_batch": sorted(queries),
        **cost.told(batches * size),
    }


def bench_art(arts: int, size: int, rounds: int = 9) -> dict[str, object]:
    """Find the nearest art of a batch in a catalog of random hashes, by the index and by a plain loop."""
    from cardpicker.stage_d.art_index import ArtIndex

    draw = random.Random(7)
    hashes = [draw.getrandbits(64) for _ in range(arts)]
    cards = [draw.choice(hashes) ^ (1 << draw.randrange(64)) for _ in range(size)]
    started = time.perf_counter()
    index = ArtIndex(range(arts), hashes)
    built_s = time.perf_counter() - started
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        found = index.nearest(cards)
        times.append(time.perf_counter() - started)
    started = time.perf_counter()
    plain = [min((card ^ value).bit_count() for value in hashes) for card in cards]
    loop_s = time.perf_counter() - started
    if plain != [each.distance if each else None for each in found]:
        sys.exit("the index and the plain loop disagree")
    median_s = sorted(times)[rounds // 2]
    return {
        "bench": f"nearest art, {arts} × {size}",
        "median_ms": round(1000 * median_s, 2),
        "plain_loop_ms": round(1000 * loop_s, 1),
        "ratio": round(loop_s / median_s, 1),
        "built_ms": round(1000 * built_s, 1),
        "index_bytes": index.nbytes,
    }


def main() -> int:
    """Measure; one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--printings", metavar="PATH", help="Scryfall's bulk file; absent: only the art index")
    parser.add_argument("--arts", type=int, default=113_000, help="hashes in the art index")
    parser.add_argument("--cards", type=int, default=100_000)
    parser.add_argument("--pairs", type=int, default=163_000, help="votes of people for the consensus")
    parser.add_argument("--batches", type=int, default=80)
    parser.add_argument("--batch-size", type=int, default=25)
    parser.add_argument("--workers", default="2")
    parser.add_argument("--chunk-size", default="500")
    arguments = parser.parse_args()
    print(json.dumps(bench_art(arguments.arts, arguments.batch_size)), flush=True)
    if arguments.printings is None:
        return 0
    with scratch_database() as url:
        os.environ |= {"CARDPICKER_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "config.settings"}
        manage(url, "migrate", "-v", "0")
        manage(url, "import_canonical_card_data", "--from", str(Path(arguments.printings).resolve()))
        import django

        django.setup()
        from django.db import connection

        from scripts.ops.stage_d_cards import make_cards, make_votes

        make_cards(arguments.cards)
        clock = Clock(url)
        print(json.dumps(bench_batches(clock, arguments.batches, arguments.batch_size)), flush=True)
        bulk = ("--write", "--workers", arguments.workers, "--chunk-size", arguments.chunk_size)
        judging = ("local_calculate_verdicts", "--override", "benchmark", *bulk)
        cost = measured(clock, lambda: manage(url, *judging))
        print(json.dumps({"bench": "bulk", "cards": arguments.cards, **cost.told(arguments.cards)}), flush=True)
        pairs = make_votes(arguments.pairs)
        cost = measured(clock, lambda: manage(url, "consensus_recompute", *bulk[:1], *bulk[3:]))
        print(json.dumps({"bench": "consensus", "pairs": pairs, **cost.told(pairs)}), flush=True)
        clock.close()
        connection.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
