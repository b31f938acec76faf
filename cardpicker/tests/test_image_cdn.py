"""The image CDN beside the pipeline: rates that belong together, what the nightly refresh picks, the Worker's own tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from cardpicker.models import Card, CardWork, Source
from cardpicker.sources.drive_address import DRIVE_ID, RESOURCE_KEY
from cardpicker.stage_c.settings import StageCSettings

PROJECT = Path(settings.BASE_DIR)
WORKER = PROJECT / "image-cdn"
SCRIPT = PROJECT / "scripts" / "ops" / "image_cdn_test.sh"

# What was agreed for both sides at once: whoever changes one changes it here, and then looks at the other.
WORKER_LIMIT = {"limit": 60, "period": 10}
CLIENT_RATE_PER_S = 7.0


def worker_config() -> dict[str, Any]:
    """Read the Worker's configuration."""
    return tomllib.loads((WORKER / "wrangler.toml").read_text(encoding="utf-8"))


def worker_limits() -> dict[str, dict[str, int]]:
    """Return the limits of the Worker by binding."""
    return {binding["name"]: binding["simple"] for binding in worker_config()["ratelimits"]}


def test_client_asks_faster_than_the_worker_lets_through() -> None:
    """The Worker stays the binding control: the client's default rate is above the full tier's."""
    limit = worker_limits()["IMAGE_FULL_TIER_RATE_LIMITER"]

    assert StageCSettings().google_image_rate > limit["limit"] / limit["period"]


def test_neither_rate_changes_alone() -> None:
    """A change of the Worker's limit or of the client's default is seen here before anybody deploys it."""
    assert worker_limits()["IMAGE_FULL_TIER_RATE_LIMITER"] == WORKER_LIMIT
    assert StageCSettings().google_image_rate == CLIENT_RATE_PER_S


def test_all_requests_to_google_together_keep_to_the_full_tiers_rate() -> None:
    """Thumbnails and redirects draw on a limiter of their own that is no wider than the full tier's."""
    assert worker_limits()["GOOGLE_DRIVE_RATE_LIMITER"] == WORKER_LIMIT


def test_worker_as_deployed_asks_only_google() -> None:
    """The configuration in the repository names no other image host, and nothing without TLS."""
    variables = worker_config()["vars"]

    allowed = variables["ALLOWED_UPSTREAM_ORIGINS"].split()
    assert variables["UPSTREAM_ORIGIN"] in allowed
    assert all(re.fullmatch(r"https://lh[3-6]\.googleusercontent\.com", origin) for origin in allowed)
    assert "PURGE_TOKEN" not in variables


def worker_pattern(name: str) -> str:
    """Return a pattern of the Worker's, without its anchors."""
    source = (WORKER / "src" / "parameters.ts").read_text(encoding="utf-8")
    found: list[str] = re.findall(rf"^const {name} = /\^(.+)\$/;$", source, re.MULTILINE)
    return found[0]


@pytest.mark.parametrize(("name", "ours"), [("IDENTIFIER", DRIVE_ID), ("RESOURCE_KEY", RESOURCE_KEY)])
def test_worker_takes_exactly_what_a_listing_accepts(name: str, ours: re.Pattern[str]) -> None:
    """An identifier that one side takes and the other refuses would be a card that never gets its image."""
    assert worker_pattern(name) == ours.pattern


def test_worker_keeps_no_addresses_in_its_logs() -> None:
    """They may hold resource keys: the Worker's own lines do without them."""
    assert worker_config()["observability"]["logs"] == {"enabled": True, "invocation_logs": False}


def test_workers_packages_are_pinned_and_come_from_no_named_host() -> None:
    """Versions are exact, and the lock leaves it to npm's configuration where packages come from."""
    package = json.loads((WORKER / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((WORKER / "package-lock.json").read_text(encoding="utf-8"))

    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in package["devDependencies"].values())
    assert not [name for name, entry in lock["packages"].items() if "resolved" in entry]
    assert all("integrity" in entry for name, entry in lock["packages"].items() if name)


def changed_identifiers() -> list[str]:
    """Run the query of the nightly refresh."""
    with connection.cursor() as cursor:
        cursor.execute((WORKER / "scripts" / "changed.sql").read_text(encoding="utf-8"))
        return [row[0] for row in cursor.fetchall()]


@pytest.mark.django_db
def test_nightly_refresh_picks_what_changed() -> None:
    """Replaced, returned and removed images of Google Drive are purged; new, renamed and other sources' ones are not."""
    drive = Source.objects.create(key="drive", name="Drive", kind="google_drive", location="x")
    folder = Source.objects.create(key="folder", name="Folder", kind="local_folder", location="/x")
    names = ("new", "renamed", "replaced", "settled", "long-ago", "removed", "returned")
    for name in names:
        Card.objects.create(source=drive, identifier=f"card-{name}", name=name, name_key=name, image_version="1")
    Card.objects.create(source=folder, identifier="card-local", name="local", name_key="local", image_version="1")
    CardWork.objects.update(due_at=None, settled_at=timezone.now())

    Card.objects.filter(identifier="card-renamed").update(name_key="other")
    Card.objects.filter(name__in=("replaced", "settled", "long-ago", "local")).update(image_version="2")
    CardWork.objects.filter(card__name="settled").update(due_at=None, settled_at=timezone.now())
    a_week_ago = timezone.now() - timedelta(days=7)
    CardWork.objects.filter(card__name="long-ago").update(due_at=None, settled_at=a_week_ago)
    Card.objects.filter(name__in=("removed", "returned")).update(removed_at=timezone.now())
    Card.objects.filter(name="returned").update(removed_at=None)

    assert changed_identifiers() == ["card-removed", "card-replaced", "card-returned", "card-settled"]


def unusable_node() -> str | None:
    """Return why the Worker's tests cannot run here, None when they can."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        return "the image CDN's tests need Node 20 or newer with npm"
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.removeprefix("v").split(".")[0]) < 20:
        return f"the image CDN's tests need Node 20 or newer, and this is {version}"
    return None


@pytest.mark.timeout(900)
def test_worker_passes_its_own_tests() -> None:
    """The Worker's suite passes in its real runtime."""
    reason = unusable_node()
    if reason is not None:
        pytest.skip(reason)

    ran = subprocess.run([str(SCRIPT)], capture_output=True, text=True, env={**os.environ, "CI": "1"}, check=False)

    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-5_000:]


def test_script_without_node_says_what_is_missing(tmp_path: Path) -> None:
    """No Node on the path: one line, exit code 1."""
    for program in ("bash", "dirname"):
        (tmp_path / program).symlink_to(shutil.which(program) or "")

    ran = subprocess.run(
        [str(tmp_path / "bash"), str(SCRIPT)], capture_output=True, text=True, env={"PATH": str(tmp_path)}, check=False
    )

    assert ran.returncode == 1
    assert ran.stderr.splitlines() == [
        "The image CDN's tests need Node 20 or newer with npm: https://nodejs.org",
    ]
