"""score_identification: machine votes against a truth file."""

from __future__ import annotations

import csv
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from cardpicker.models import Card, CardPrintingTag, ReviewItem, VoteSource
from cardpicker.operations.scoring import read_truth
from cardpicker.tests.stage_d_cases import make_card, make_printing

#: Votes for the right printing and for the other one.
VOTED = (("some/folder/right.png", 0.85), ("some/folder/right.png", 0.65))
COLUMNS = ("file", "expect", "expect_set", "expect_cn", "kind", "frame")
CASES = Path(settings.BASE_DIR).parent / "shared" / "cases" / "truth.csv"


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    """A truth file with a row of each kind, whose cards and votes are stored."""
    path = tmp_path / "truth.csv"
    rows = [
        ("right.png", "printing", "xln", "65", "scan", "2015"),
        ("wrong.png", "printing", "xln", "65", "scan", "2015"),
        ("silent.png", "printing", "xln", "65", "photo", "2003"),
        ("custom.png", "none", "", "", "custom", "2015"),
        ("back.png", "none", "", "", "custom", ""),
        ("bare.png", "abstain", "", "", "scan", "1997"),
        ("missing.png", "printing", "xln", "65", "scan", "2015"),
    ]
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows])
    return path


@pytest.fixture
def votes(db: None) -> None:
    """One card a row but the last, with votes as their names say."""
    opt, other = make_printing("Opt", "xln", "65"), make_printing("Opt", "dom", "60")

    def vote(file: str, printing: Any, confidence: float, voter: str = "stage-d-join-key-v1") -> None:
        card = make_card("Opt", identifier=file) if voter == "stage-d-join-key-v1" else card_of[file]
        card_of[file] = card
        CardPrintingTag.objects.create(
            card=card,
            printing=printing,
            is_no_match=printing is None,
            anonymous_id=voter,
            source=VoteSource.USER if voter.startswith("user") else VoteSource.OCR,
            confidence=confidence,
        )

    card_of: dict[str, Any] = {}
    vote("some/folder/right.png", opt, 0.85)
    vote("some/folder/right.png", other, 0.65, "another-machine")
    vote("some/folder/right.png", other, 1.0, "user:1")
    vote("wrong.png", other, 0.75)
    vote("custom.png", opt, 0.75)
    vote("back.png", None, 0.6)
    make_card("Opt", identifier="silent.png")
    make_card("Opt", identifier="bare.png")


def run(*arguments: str) -> str:
    """Run the command and return what it printed."""
    out = StringIO()
    call_command("score_identification", *arguments, stdout=out)
    return out.getvalue()


@pytest.mark.usefixtures("votes")
def test_each_vote_is_right_wrong_absent_or_a_false_positive(truth: Path) -> None:
    """The best machine vote counts; people's do not; rows without a card score nothing."""
    score = json.loads(run("--truth", str(truth), "--json"))

    assert score["overall"] == {
        "right": 2,
        "wrong": 1,
        "abstained": 2,
        "false_positives": 1,
        "cards": 6,
        "precision": 0.5,
        "recall": 0.3333,
    }
    assert score["by_kind"]["photo"] == {
        "right": 0,
        "wrong": 0,
        "abstained": 1,
        "false_positives": 0,
        "cards": 1,
        "precision": None,
        "recall": 0.0,
    }
    assert set(score["by_frame"]) == {"2015", "2003", "1997", "(not given)"}
    assert [(row["file"], row["expected"], row["voted"]) for row in score["wrong"]] == [
        ("wrong.png", "xln 65", "dom 60"),
        ("custom.png", "none", "xln 65"),
    ]
    assert score["unscored"] == {"count": 1, "files": ["missing.png"]}


@pytest.mark.usefixtures("votes")
def test_the_table_names_wrong_votes_and_missing_cards(truth: Path) -> None:
    """Columns are aligned, so that figures can be compared by eye."""
    text = run("--truth", str(truth))

    assert "wrong.png: voted dom 60 (stage-d-join-key-v1, 0.75), expected xln 65" in text
    assert "no such card (1):\n  missing.png" in text
    header, _rule, overall = text.splitlines()[:3]
    assert len(header) == len(overall)
    assert overall.split() == ["all", "6", "2", "1", "1", "2", "0.500", "0.333"]


@pytest.mark.usefixtures("votes")
@pytest.mark.parametrize(
    ("arguments", "passes"),
    [
        (["--min-precision", "0.5", "--min-recall", "0.33"], True),
        (["--min-precision", "0.51"], False),
        (["--min-recall", "0.34"], False),
    ],
)
def test_a_score_below_the_minimum_exits_with_7(truth: Path, arguments: list[str], passes: bool) -> None:
    """The score is printed either way."""
    if passes:
        assert "precision" in run("--truth", str(truth), *arguments)
        return
    with pytest.raises(CommandError, match="Verification failed") as failure:
        run("--truth", str(truth), *arguments)
    assert failure.value.returncode == 7


@pytest.mark.django_db
def test_what_could_not_be_measured_is_no_pass(truth: Path) -> None:
    """A catalog without these cards reaches no minimum."""
    with pytest.raises(CommandError) as failure:
        run("--truth", str(truth), "--min-precision", "0")
    assert failure.value.returncode == 7


@pytest.mark.usefixtures("votes")
def test_only_the_given_source_is_scored(truth: Path) -> None:
    """A key that no source has is refused."""
    assert json.loads(run("--truth", str(truth), "--json", "--source", "cases"))["overall"]["cards"] == 6
    with pytest.raises(CommandError, match="No source has the key 'elsewhere'"):
        run("--truth", str(truth), "--source", "elsewhere")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read"),
        (b"", "no column file"),
        (b"file,expect\n", "no column expect_set, expect_cn"),
        (b"file,expect,expect_set,expect_cn\n", "has no rows"),
        (b"file,expect,expect_set,expect_cn\na.png,maybe,,\n", "line 2: expect is 'maybe'"),
        (b"file,expect,expect_set,expect_cn\na.png,printing,xln,\n", "line 2: expects a printing without"),
        (b"file,expect,expect_set,expect_cn\n,none,,\n", "line 2: names no file"),
        (b"file,expect,expect_set,expect_cn\na.png,none,,\na.png,none,,\n", "'a.png' more than once"),
        (b"file,expect,expect_set,expect_cn\na.png\n", "line 2: expect is"),
        (b"\xff\xfe\x00", "is not a UTF-8 CSV file"),
        (b'file,expect,expect_set,expect_cn\n"a.png,none,,\n', "is not a UTF-8 CSV file"),
    ],
)
def test_a_bad_truth_file_is_one_clear_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    """Wrong use exits with 1 and says what and where."""
    path = tmp_path / "truth.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CommandError) as failure:
        run("--truth", str(path))
    assert failure.value.returncode == 1
    assert message in str(failure.value)
    assert "\n" not in str(failure.value)


def test_the_private_truth_file_can_be_read() -> None:
    """Its columns are a superset of what is needed."""
    if not CASES.exists():
        pytest.skip("the private cases are not on this machine")
    assert {row.expect.value for row in read_truth(CASES)} == {"printing", "none", "abstain"}


@pytest.mark.usefixtures("votes")
@pytest.mark.parametrize(
    ("head", "arguments", "missed"),
    [
        ("# max_wrong=1, min_recall=0.3\n", [], None),
        ("# A golden set.\n# max_wrong=0 max_false_positives=0\n", [], "wrong 1 (at most 0); false positives 1 (at"),
        ("# max_wrong=0\n", ["--max-wrong", "1"], None),
        ("", ["--max-unscored", "0"], "unscored 1 (at most 0)"),
        ("", ["--min-survivors", "0.5"], "survivors could not be measured (at least 0.5)"),
    ],
)
def test_a_golden_set_says_itself_what_fails(truth: Path, head: str, arguments: list[str], missed: str | None) -> None:
    """In lines above its columns; an option stands in the place of the same line."""
    truth.write_text(head + truth.read_text(encoding="utf-8"), encoding="utf-8")
    if missed is None:
        assert "precision" in run("--truth", str(truth), *arguments)
        return
    with pytest.raises(CommandError) as failure:
        run("--truth", str(truth), *arguments)
    assert failure.value.returncode == 7
    assert missed in str(failure.value)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# max_wrog=0\n", "line 1: 'max_wrog' is no tolerance; known: max_false_positives"),
        ("# fine\n# min_recall=2\n", "line 2: min_recall=2 is not a share from 0 to 1"),
        ("# max_wrong=few\n", "line 1: max_wrong=few is not a whole number"),
        ("# max_wrong=0\nfile,expect,expect_set,expect_cn\na.png,maybe,,\n", "line 3: expect is 'maybe'"),
    ],
)
def test_a_bad_head_is_one_clear_line(truth: Path, content: str, message: str) -> None:
    """Lines are counted from the file's first, head included."""
    rows = "" if "file," in content else truth.read_text(encoding="utf-8")
    truth.write_text(content + rows, encoding="utf-8")
    with pytest.raises(CommandError) as failure:
        run("--truth", str(truth))
    assert failure.value.returncode == 1
    assert message in str(failure.value)


@pytest.mark.usefixtures("votes")
def test_abstentions_say_why_and_whether_the_truth_survives(truth: Path) -> None:
    """An expected printing that the catalog does not have can survive nowhere, and is named."""
    opt, other = (CardPrintingTag.objects.get(card__identifier=f, confidence=c).printing for f, c in VOTED)
    assert opt is not None and other is not None
    cards = {card.identifier: card for card in Card.objects.all()}
    ReviewItem.objects.create(card=cards["silent.png"], reason="AMBIGUOUS", survivors=[other.pk, opt.pk], detail="d")
    lines = truth.read_text(encoding="utf-8").splitlines()
    lines += ["lost.png,printing,xln,65,scan,2015", "new.png,printing,zzz,9a,scan,2015"]
    truth.write_text("\n".join(lines), encoding="utf-8")
    for name, survivors in (("lost.png", [other.pk]), ("new.png", [])):
        ReviewItem.objects.create(card=make_card("Opt", identifier=name), reason="AMBIGUOUS", survivors=survivors)

    score = json.loads(run("--truth", str(truth), "--json"))

    told = {row["file"]: (row["reason"], row["survivors"], row["truth_survives"]) for row in score["abstained"]}
    assert told == {
        "silent.png": ("AMBIGUOUS", 2, True),
        "bare.png": ("no-question", 0, None),
        "lost.png": ("AMBIGUOUS", 1, False),
        "new.png": ("AMBIGUOUS", 0, None),
    }
    assert score["ambiguous"] == {"cards": 2, "truth_survives": 1, "share": 0.5}
    assert score["abstained_by_reason"] == {"AMBIGUOUS": 3, "no-question": 1}
    assert score["unknown_printings"] == ["zzz 9a"]
    assert (score["overall"]["recall"], score["in_catalog"]["recall"]) == (0.2, 0.25)
    assert score["in_catalog"]["cards"] == 4
    assert "of 2 ambiguous ones 50% have the truth" in run("--truth", str(truth))
