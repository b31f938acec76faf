"""What a conveyor's owner keeps of the memory that items took."""

from __future__ import annotations

import subprocess
import sys

import pytest
from django.conf import settings as site

from cardpicker.tests.conveyor_rig import PATIENCE_S, START_METHODS


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc says how many heaps it has")
@pytest.mark.parametrize("start_method", START_METHODS)
def test_fetch_threads_have_no_heaps_of_their_own(start_method: str) -> None:
    """Each would grow to the largest images that it ever held and keep that, run after run."""
    done = subprocess.run(
        [sys.executable, "-m", "cardpicker.tests.conveyor_owner", start_method, "count heaps"],
        cwd=site.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode == 0
    heaps = [line for line in done.stderr.splitlines() if line.startswith("Arena ")]
    assert heaps == ["Arena 0:"]
