"""A whole product on a scratch database: an embedded server of its own, every table made, and a catalog of printings.

Django can be set up once a process, so this can be had once a process; models are imported inside the block.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts.ops.embedded.processes import wait_for_end

ROOT = Path(__file__).resolve().parents[2]
SAMPLE_PRINTINGS = ROOT / "sample_catalogue" / "printings.jsonl"
STOP_PATIENCE_S = 30.0
#: Started by a process that ends at once, the server is no descendant of this one: a dispatch measures the memory of all
#: that it started, and a database on the same host is not among that.
_START = """
import json, sys
from scripts.ops.embedded.keeper import start_kept
kept = start_kept(None, owner_pid=int(sys.argv[1]))
print(json.dumps({"url": kept.url, "pid": kept.keeper.pid}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchServer:
    """A server that ends with this process at the latest."""

    url: str
    pid: int  #: Of the process under which it runs.


@contextlib.contextmanager
def scratch_server() -> Iterator[ScratchServer]:
    """Have a server on temporary data for the length of the block."""
    command = [sys.executable, "-c", _START, str(os.getpid())]
    started = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    server = ScratchServer(**json.loads(started.stdout))
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, signal.SIGTERM)
        wait_for_end([server.pid], STOP_PATIENCE_S)


@contextlib.contextmanager
def scratch_product(printings: Path, environment: Mapping[str, str]) -> Iterator[int]:
    """Have the product for the length of the block; yields the process under which its database server runs.

    Streaming is on, and the host's load halts nothing: others' work is not what is measured.

    Args:
        environment: settings beside these.
    """
    for name in [name for name in os.environ if name.startswith(("STAGE_", "CARDPICKER_", "Q_"))]:
        del os.environ[name]
    with scratch_server() as server:
        os.environ |= {
            "CARDPICKER_DATABASE_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "STAGE_E_STREAMING_ENABLED": "1",
            "STAGE_E_HOST_LOAD_CEILING": "10000",
            **environment,
        }
        import django
        from django.core.management import call_command

        django.setup()
        logging.getLogger("django-q").setLevel(logging.WARNING)
        call_command("migrate", verbosity=0)
        with contextlib.redirect_stderr(io.StringIO()):
            call_command("import_canonical_card_data", "--from", str(printings), stdout=io.StringIO())
        try:
            yield server.pid
        finally:
            from django.db import connections

            connections.close_all()
