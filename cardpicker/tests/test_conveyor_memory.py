"""What a conveyor's owner keeps of the memory that items took."""

from __future__ import annotations

import sys

import pytest

from cardpicker.tests.conveyor_rig import START_METHODS, run_owner


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc says how many heaps it has")
@pytest.mark.parametrize("start_method", START_METHODS)
def test_fetch_threads_have_no_heaps_of_their_own(start_method: str) -> None:
    """Each would grow to the largest images that it ever held and keep that, run after run."""
    done = run_owner(start_method, "count heaps")

    assert done.returncode == 0
    heaps = [line for line in done.stderr.splitlines() if line.startswith("Arena ")]
    assert heaps == ["Arena 0:"]
