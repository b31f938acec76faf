"""Agreement of several readings: clear or twice the same is believed, contradiction is not."""

from __future__ import annotations

import pytest

from cardpicker.stage_c.extractors.collector_parse import LineRead, parse_rows
from cardpicker.stage_c.extractors.consensus import Doubts, agree, doubts
from cardpicker.tests.test_collector_line_parse import KNOWN, row


def reading(number: str, confidence: float, code: str = "MKM • EN JOHN AVON") -> LineRead:
    rows = [row(number, 0, confidence=confidence), row(code, 1, confidence=0.9)]
    return parse_rows(rows, KNOWN)


def test_one_clear_reading_in_a_known_set_is_certain() -> None:
    """A sharp line needs no second look."""
    lines = [reading("123/287 R", 0.92)]

    assert doubts(lines) == Doubts(number=False, set=False)
    assert agree(lines).number is not None
    assert agree(lines).confidence >= 0.9


def test_one_faint_reading_is_null() -> None:
    """A wrong number is worse than none."""
    agreed = agree([reading("123/287 R", 0.4)])

    assert agreed.number is None
    assert agreed.readings == ("123",)


def test_two_faint_readings_that_agree_are_believed() -> None:
    """Unlike views that say the same support each other."""
    agreed = agree([reading("123/287 R", 0.45), reading("123/287 R", 0.5)])

    assert agreed.number is not None
    assert agreed.supporters == 2


def test_readings_that_contradict_each_other_give_null() -> None:
    """One against one is doubt, however sure each is."""
    agreed = agree([reading("123/287 R", 0.95), reading("128/287 R", 0.95)])

    assert agreed.number is None
    assert agreed.confidence == 0.0
    assert agreed.readings == ("123", "128")


def test_a_majority_is_believed_less_than_unanimity() -> None:
    """Two against one leaves doubt in the confidence."""
    disputed = agree([reading("123/287 R", 0.9), reading("128/287 R", 0.9), reading("123/287 R", 0.9)])
    unanimous = agree([reading("123/287 R", 0.9)] * 3)

    assert disputed.number is not None
    assert disputed.confidence < unanimous.confidence


@pytest.mark.parametrize("confidence", [0.1, 0.9])
def test_a_look_alike_code_needs_a_clear_reading(confidence: float) -> None:
    """An exchanged character in a faint code proves no set."""
    line = parse_rows([row("123/287 R", 0), row("MHI • EN X", 1, confidence=confidence)], KNOWN)

    found = agree([line]).set

    assert (found is not None and found.code.known) is (confidence > 0.5)


def test_a_size_that_the_readings_differ_in_is_not_known() -> None:
    """The number they agree on stands, the size of its set does not."""
    lines = [reading("182/240 C", 0.8), reading("182/249 C", 0.8)]

    agreed = agree(lines)

    assert agreed.number is not None
    assert (agreed.number.number, agreed.number.set_size) == ("182", None)
