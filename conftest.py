"""What all tests share: no skip for want of something installable under ``REQUIRE_ALL=1``.

The database is not chosen here: pytest-django reads the settings before any conftest, so scripts/ops/test_database.py does it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator

import pytest

#: A skip with one of these in its reason is right on any machine: the cases are private, or this system has no such thing.
ALLOWED_SKIP = re.compile(r"private|shared/cases|not possible here", re.IGNORECASE)


def _forbid(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure unless its reason is an allowed one."""
    if os.environ.get("REQUIRE_ALL") != "1" or report.outcome != "skipped" or hasattr(report, "wasxfail"):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if ALLOWED_SKIP.search(reason) is None:
        report.outcome = "failed"
        report.longrepr = f"REQUIRE_ALL=1 allows no such skip: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Judge the skip of a test."""
    report = yield
    _forbid(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Judge the skip of a whole module."""
    report = yield
    _forbid(report)
    return report
