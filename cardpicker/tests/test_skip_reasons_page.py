"""docs/reference/skip-reasons.md says what the code says: every code, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from cardpicker.models import ReviewReason, VoteChange
from cardpicker.operations.channels import Silence
from cardpicker.stage_d.consensus import MachinesUnheard, Rule
from cardpicker.stage_d.eligibility import Ineligible
from cardpicker.stage_d.slow_path import REVIEW_REASONS
from cardpicker.stage_d.verdicts import SkipReason

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/skip-reasons.md"
ROW = re.compile(r"^\| `([\w-]+)` +\|(.*)\|$", re.MULTILINE)
SECTIONS: dict[str, set[str]] = {
    "A calculator abstains": set(SkipReason),
    "The calculators leave a card alone": set(Ineligible),
    "A channel is silent": set(Silence),
    "Consensus": {*Rule, *MachinesUnheard},
    "A vote has ended": set(VoteChange.values),
}


def sections() -> dict[str, dict[str, str]]:
    """Return the codes of each section with the rest of their rows."""
    parts = re.split(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        title: dict(ROW.findall(text)) for title, text in zip(parts[1::2], parts[2::2], strict=True) if ROW.search(text)
    }


def test_every_code_is_on_the_page_and_nothing_else_is() -> None:
    """A reason that is added, renamed or dropped must be so here too."""
    written = {title: set(rows) for title, rows in sections().items()}

    assert written == {title: {str(code) for code in codes} for title, codes in SECTIONS.items()}


def test_the_question_beside_a_reason_is_the_one_that_is_asked() -> None:
    """As the slow path has it."""
    rows = sections()["A calculator abstains"]
    asked = {code: re.findall(r"`([A-Z_]+)`", rest)[-1] for code, rest in rows.items()}

    assert asked == {str(reason): ReviewReason(question).value for reason, question in REVIEW_REASONS.items()}
