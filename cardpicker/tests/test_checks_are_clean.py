"""The tree is clean by the rules that the hooks run too."""

from __future__ import annotations

import subprocess

import pytest
from django.conf import settings


@pytest.mark.timeout(1200)
def test_every_check_passes() -> None:
    """Linters, formatters, types, import directions, docs, settings page and migrations, as scripts/ops/check.sh runs them."""
    done = subprocess.run(
        ["scripts/ops/check.sh"], cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=1100
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "all checks passed"
