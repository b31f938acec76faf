"""run_pipeline: the whole update in one command, and the exit code of the step that stopped it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cardpicker.models import CardPrintingTag
from cardpicker.stage_e import envelope
from cardpicker.tests.cluster import manage

pytestmark = pytest.mark.django_db(transaction=True)

SAMPLE = Path(__file__).resolve().parents[2] / "sample_catalogue"
WHOLE = (
    *("--from", str(SAMPLE / "printings.jsonl")),
    *("--add-folder", str(SAMPLE / "images")),
    *("--truth", str(SAMPLE / "truth.csv")),
)


def test_one_command_from_nothing_to_a_verified_catalog() -> None:
    """Printings, cards, votes, reports and the score, in this order."""
    done = manage("run_pipeline", *WHOLE, "--min-precision", "1", "--min-recall", "0.4")

    assert done.returncode == 0, done.stdout + done.stderr
    steps = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("── ")]
    expected = ["import_canonical_card_data", "update_database", "stream_full_catalog", "stage_e_status"]
    assert steps == [*expected, "channel_report", "score_identification"]
    assert CardPrintingTag.objects.exists()


def test_a_failed_verification_has_its_exit_code() -> None:
    """A catalog that does not reach what was asked for is not done."""
    failed = manage("run_pipeline", *WHOLE, "--min-recall", "1")

    assert failed.returncode == 7
    assert "pipeline: stopped at score_identification with exit code 7" in failed.stderr


def test_a_halt_and_a_missing_file_stop_it_with_their_codes(tmp_path: Path) -> None:
    """Nothing is run after the step that failed."""
    missing = manage("run_pipeline", "--from", str(tmp_path / "none.json"))
    envelope.pause("me", "looking")
    halted = manage("run_pipeline", *WHOLE)

    assert missing.returncode == 1 and "update_database" not in missing.stdout
    assert halted.returncode == 3 and "score_identification" not in halted.stdout
    assert "Traceback" not in missing.stderr + halted.stderr
