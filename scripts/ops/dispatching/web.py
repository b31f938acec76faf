"""The admin's answer times beside workers at full load: people look at the site while images are read."""

from __future__ import annotations

import contextlib
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

import requests
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore

from cardpicker.models import PilotRunLedger, RunStatus
from cardpicker.stage_e.envelope import acknowledge_trip, pause
from scripts.ops.dispatching.bench import Bench, Figure, cpu_s, wait_for
from scripts.ops.drill import processes
from scripts.ops.drill.cluster import PROJECT

PAGES = {"list of cards": "/admin/cardpicker/card/", "search": "/admin/cardpicker/card/?q=elf"}
EVERY_S = 0.5
TARGET = 2.0
WARM_UP_S = 5.0
#: Enough to keep every slot at work for longer than the pages are asked for; what is left over is given up.
CARDS_A_SECOND = 40


def measure(bench: Bench, window_s: float) -> Iterator[Figure]:
    """Ask for pages for ``window_s`` seconds without load, and as long with it."""
    with _site() as (address, cookie):
        session = requests.Session()
        session.cookies.set("sessionid", cookie)
        session.trust_env = False
        # The pages are as long without load as with it.
        trip = pause("bench", "the load comes later")
        bench.save(int((window_s + WARM_UP_S) * CARDS_A_SECOND), local=True)
        with bench.cluster() as cluster:
            _ask(session, address, WARM_UP_S)
            idle = _ask(session, address, window_s)
            acknowledge_trip(trip.pk, "now", "bench")
            wait_for(lambda: PilotRunLedger.objects.filter(status=RunStatus.RUNNING).count() > 1, "both slots at work")
            time.sleep(WARM_UP_S)
            began, before = time.monotonic(), _computed_s(cluster.pid)
            loaded = _ask(session, address, window_s)
            cores = (_computed_s(cluster.pid) - before) / (time.monotonic() - began)
            still = PilotRunLedger.objects.filter(status=RunStatus.RUNNING).count()
    yield Figure(part="web", name="cores computing under load", value=cores)
    yield Figure(
        part="web", name="runs still at work at the end", value=still, promise="at least 1", is_kept=bool(still)
    )
    for page in PAGES:
        for name, at in (("p50", 50), ("p95", 95)):
            calm, busy = (_percentile(times[page], at) for times in (idle, loaded))
            yield Figure(part="web", name=f"{page}: {name} idle", value=1000 * calm, unit="ms")
            yield Figure(part="web", name=f"{page}: {name} under load", value=1000 * busy, unit="ms")
        yield Figure(
            part="web",
            name=f"{page}: p95 against idle",
            value=busy / calm,
            unit="×",
            promise=f"below {TARGET:g}",
            is_kept=busy < TARGET * calm,
        )


def _ask(session: requests.Session, address: str, window_s: float) -> dict[str, list[float]]:
    """Ask for each page every half second; return the seconds until each answer was there."""
    times: dict[str, list[float]] = {page: [] for page in PAGES}
    began = time.monotonic()
    turn = 0
    while time.monotonic() - began < window_s:
        for page, path in PAGES.items():
            asked = time.monotonic()
            answer = session.get(address + path, timeout=60)
            times[page].append(time.monotonic() - asked)
            if answer.status_code != 200 or "Cards" not in answer.text:
                raise RuntimeError(f"{path} is answered with {answer.status_code}")
        turn += 1
        time.sleep(max(0.0, began + turn * EVERY_S - time.monotonic()))
    return times


@contextlib.contextmanager
def _site() -> Iterator[tuple[str, str]]:
    """Serve the site as the quickstart does; yield its address and the session of a superuser."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "waitress", f"--listen=127.0.0.1:{port}", "--threads=4", "config.wsgi:application"]
    server = subprocess.Popen(
        command, cwd=PROJECT, env=dict(os.environ), stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: _listens(port), "the site", within_s=60)
        yield f"http://127.0.0.1:{port}", _login()
    finally:
        server.terminate()
        server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _login() -> str:
    user = get_user_model().objects.create_superuser(f"bench-{os.getpid()}", password=None)
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.create()
    return str(session.session_key)


def _computed_s(main_pid: int) -> float:
    _, workers = processes.workers_of(main_pid, [])
    return sum(cpu_s(processes.pool_children_of(worker.pid)) for worker in workers)


def _percentile(values: list[float], at: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[at - 1]
