"""The benchmark of large sources, at a small size: it finds what it is to find."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

PROJECT = Path(settings.BASE_DIR)
FILES = 3_000


@pytest.mark.django_db
@pytest.mark.timeout(600)
def test_a_drive_is_synced_again_without_a_write_and_a_failed_page_changes_nothing() -> None:
    """Figures of every sync, in processes of their own."""
    done = subprocess.run(
        [sys.executable, "scripts/ops/bench_sources.py", "--files", str(FILES)],
        cwd=PROJECT,
        env={**os.environ, "CARDPICKER_DATABASE_URL": server_url()},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
    figures = json.loads(done.stdout)
    assert figures["failed_last_page"]["wrote"] == {}
    assert figures["first_traced"]["said"]["listed"] == FILES
    assert figures["second"]["wrote"] == {"source": "+0 ~1 -0"}
    assert figures["second"]["cards_untouched"]
    assert figures["bytes_held_per_file"] <= 1_000


def server_url() -> str:
    """Return the address of the test's own database."""
    found = connection.settings_dict
    password = f":{found['PASSWORD']}" if found["PASSWORD"] else ""
    return f"postgres://{found['USER']}{password}@{found['HOST']}:{found['PORT']}/{found['NAME']}"
