"""The quickstart: its count, its table, and the whole of it through its script."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.utils import timezone

from cardpicker.models import (
    CanonicalCard,
    CanonicalExpansion,
    Card,
    CardPrintingTag,
    CardWork,
    EnvelopeTrip,
    ImageEvidence,
    Source,
)
from cardpicker.operations.quickstart import ensure_admin, measure_progress, report_rows, result_lines

PROJECT = Path(__file__).resolve().parents[2]
SCRIPT = PROJECT / "scripts" / "ops" / "quickstart.py"
PATIENCE_S = 280.0
FOLDER = Path("/pictures")


def add_card(name: str, **work: Any) -> Card:
    """Save a card of ``FOLDER`` whose work is done but for what ``work`` says."""
    source, _ = Source.objects.get_or_create(key="s", kind="local_folder", location=str(FOLDER))
    card = Card.objects.create(source=source, identifier=name, name=name, image_version="1")
    CardWork.objects.filter(card=card).update(**{"due_at": None} | work)
    return card


def add_printing() -> CanonicalCard:
    """Save Opt of Dominaria."""
    expansion = CanonicalExpansion.objects.create(code="dom", name="Dominaria")
    return CanonicalCard.objects.create(
        identifier=uuid.uuid4(), name="Opt", name_key="opt", expansion=expansion, collector_number="60", language="en"
    )


def add_evidence(card: Card, **fields: Any) -> ImageEvidence:
    """Save evidence of ``card`` without telling the pipeline."""
    return ImageEvidence.objects.bulk_create(
        [ImageEvidence(card=card, image_version="1", image_sha256="0" * 64, manifest="m", **fields)]
    )[0]


@pytest.mark.django_db
def test_settled_is_done_or_quarantined_with_a_name() -> None:
    """Due, leased and namelessly quarantined cards are not settled, and each is named with its state."""
    now = timezone.now()
    add_card("done")
    add_card("gone", quarantined_at=now, last_outcome="gone")
    add_card("nameless", quarantined_at=now)
    add_card("due", due_at=now)
    add_card("leased", lease_owner=uuid.uuid4(), leased_until=now)

    progress = measure_progress(FOLDER)

    assert (progress.total, progress.settled, progress.is_settled) == (5, 2, False)
    assert [line.split(" (")[0] for line in progress.unsettled] == [
        "due: due",
        "leased: leased",
        "nameless: quarantined",
    ]


@pytest.mark.django_db
def test_nothing_is_not_settled_and_other_folders_do_not_count() -> None:
    """A folder without cards is no success, whatever other sources hold."""
    add_card("done")

    assert not measure_progress(Path("/elsewhere")).is_settled
    assert measure_progress(None).is_settled


@pytest.mark.django_db
def test_row_tells_what_was_read_and_the_surest_vote() -> None:
    """Set, number, language and artist as read; the vote of the highest confidence; the time in seconds."""
    card = add_card("Opt")
    line = {"set_code": "dom", "number": "60", "language": "en"}
    add_evidence(card, readings={"collector_line": line, "artist": {"artist": "Tyler Jacobson"}}, elapsed_ms=640)
    CardPrintingTag.objects.create(card=card, is_no_match=True, anonymous_id="b", source="OCR", confidence=0.6)
    CardPrintingTag.objects.create(card=card, printing=add_printing(), anonymous_id="a", source="OCR", confidence=0.85)

    assert report_rows(FOLDER) == [("Opt", "DOM 60 EN Tyler Jacobson", "DOM 60 EN, Opt", "0.85", "0.6 s")]


@pytest.mark.django_db
def test_row_of_a_card_without_a_vote_tells_why() -> None:
    """Set aside with its outcome, read without a result, copied from its twin, and not looked at yet."""
    add_card("a", quarantined_at=timezone.now(), last_outcome="unusable-truncated")
    blank = add_card("b")
    add_evidence(blank, readings={"collector_line": {"set_code": None, "number": None}}, elapsed_ms=50)
    add_evidence(add_card("c"), readings={"legal_line": {"copyright_year": 1998}}, transferred_from=blank)
    add_card("d", due_at=timezone.now())

    assert report_rows(FOLDER) == [
        ("a", "set aside: unusable-truncated", "–", "–", "–"),
        ("b", "nothing", "–", "–", "0.1 s"),
        ("c", "© 1998", "–", "–", "copied"),
        ("d", "–", "–", "–", "–"),
    ]


def test_table_is_aligned_and_no_cell_is_wider_than_a_terminal_bears() -> None:
    """Columns start at one place in every line; numbers end at one; long and broken names are shortened."""
    lines = result_lines([("x" * 200, "a\nb", "p", "0.85", "0.6 s"), ("y", "", "q", "–", "10.0 s")])

    assert len({line.index(mark) for line, mark in zip(lines[2:], ("p", "q"), strict=True)}) == 1
    assert len({len(line) for line in lines}) == 1
    assert max(map(len, lines)) < 130
    assert "a b" in lines[2]


@pytest.mark.django_db
def test_report_stops_at_a_halt_and_says_how_to_go_on() -> None:
    """An open trip ends the waiting at once, with its exit code and the command that acknowledges it."""
    add_card("due", due_at=timezone.now())
    trip = EnvelopeTrip.objects.create(bar="HOST_LOAD", value=9.5, ceiling=7)
    out = StringIO()

    with pytest.raises(SystemExit) as stopped:
        call_command("quickstart_report", folder=FOLDER, wait=600, stdout=out)

    assert stopped.value.code == 3
    assert f"resolve_envelope_trip --acknowledge-trip {trip.pk} --note" in out.getvalue()
    assert "Host load: 9.5 where 7 is allowed" in out.getvalue()


@pytest.mark.django_db
def test_admin_is_made_once_and_a_password_that_a_person_set_is_left_alone() -> None:
    """The first call makes the account; a later one tells whether the password still fits."""
    assert ensure_admin("admin", "first")
    assert ensure_admin("admin", "first")
    user = get_user_model().objects.get(username="admin")
    assert user.is_superuser
    user.set_password("mine")
    user.save()

    assert not ensure_admin("admin", "first")
    user.refresh_from_db()
    assert user.check_password("mine")


@pytest.fixture
def data_dir() -> Iterator[Path]:
    """A data folder that the embedded server's account can enter."""
    folder = Path(tempfile.mkdtemp(prefix="cardpicker-test-"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def start_quickstart(data_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the quickstart on a database of its own."""
    environment = {key: value for key, value in os.environ.items() if key != "CARDPICKER_DATABASE_URL"}
    return subprocess.Popen(
        [sys.executable, SCRIPT, *arguments],
        cwd="/",
        # The host that runs the tests may be busy; this is no test of the envelope.
        env=environment | {"CARDPICKER_DATA_DIR": str(data_dir), "STAGE_E_HOST_LOAD_CEILING": "1000"},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )


def processes_of(data_dir: Path) -> list[int]:
    """Return every process that was started for ``data_dir``: it stands in its environment or its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                about = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
                if str(data_dir).encode() in about and (entry / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                    found.append(int(entry.name))
    return found


def eventually(condition: Callable[[], bool]) -> bool:
    """Whether ``condition`` becomes true within the patience of a test."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.timeout(600)
def test_quickstart_identifies_the_sample_and_leaves_nothing_running(data_dir: Path) -> None:
    """--once exits 0 with a row for each card, printings among them; a second run does so too, on the data of the first."""
    images = [file for file in (PROJECT / "sample_catalogue" / "images").iterdir() if file.suffix != ".csv"]
    for _run in range(2):
        process = start_quickstart(data_dir, "--once")
        said, _ = process.communicate(timeout=PATIENCE_S)

        assert process.returncode == 0, said
        assert f"All {len(images)} cards are settled." in said
        assert re.search(r"^Zombie +DDQ 80 EN .*DDQ 80 EN, Zombie +0\.\d\d +\d+\.\d s$", said, re.MULTILINE), said
        assert processes_of(data_dir) == []
    assert (data_dir / "admin-password").stat().st_mode & 0o777 == 0o600


def read_until(process: subprocess.Popen[str], beginning: str) -> None:
    """Read what the quickstart says up to the line that begins so."""
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith(beginning):
            return
    pytest.fail("".join(said))


@pytest.mark.timeout(600)
def test_ctrl_c_ends_all_that_the_quickstart_started(data_dir: Path) -> None:
    """SIGINT while serving ends the workers, the web server and the database; meanwhile a second one is refused."""
    process = start_quickstart(data_dir)
    read_until(process, "Serving.")
    second, _ = start_quickstart(data_dir, "--once").communicate(timeout=PATIENCE_S)
    assert f"runs here already (process {process.pid})" in second

    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, said
    assert eventually(lambda: processes_of(data_dir) == [])


@pytest.mark.timeout(600)
def test_kill_in_mid_batch_leaves_nothing_running_and_nothing_lost(data_dir: Path) -> None:
    """SIGKILL while cards are identified ends all that was started, and the next run settles every card."""
    process = start_quickstart(data_dir)
    read_until(process, "Identifying")
    process.kill()
    process.communicate(timeout=PATIENCE_S)

    assert eventually(lambda: processes_of(data_dir) == [])
    again = start_quickstart(data_dir, "--once")
    said, _ = again.communicate(timeout=PATIENCE_S)
    assert again.returncode == 0, said
