"""What the brackets of a file's name say, and what they are not made to say."""

from __future__ import annotations

import pytest

from cardpicker.catalogue.name_key import name_key
from cardpicker.sources.name_hints import NameHints, parse_name_hints


@pytest.mark.parametrize(
    ("name", "hints"),
    [
        (
            "Lightning Bolt (MH2) {123} [Christopher Rush]",
            {"set_code": "mh2", "collector_number": "123", "artist": "Christopher Rush"},
        ),
        ("Lightning Bolt [MH2] {0123a}", {"set_code": "mh2", "collector_number": "123a"}),
        ("Lightning Bolt {123/287}", {"collector_number": "123"}),
        ("Lightning Bolt {★12}", {"collector_number": "★12"}),
        ("Lightning Bolt (2X2 117)", {"set_code": "2x2", "collector_number": "117"}),
        ("Lightning Bolt [plst-0042]", {"tags": ["plst-0042"]}),
        ("Lightning Bolt (PLST-042)", {"set_code": "plst", "collector_number": "42"}),
        ("Blitzschlag (DE)", {"language": "de"}),
        ("稲妻 [Japanese] (JP)", {"language": "ja"}),
        ("Blitz (Simplified Chinese)", {"language": "zhs"}),
        ("Bolt (EN, MH2, Foil)", {"language": "en", "set_code": "mh2", "tags": ["foil"]}),
        ("Bolt (Art by Seb McKinnon)", {"artist": "Seb McKinnon"}),
        ("Bolt [Illus. John Avon]", {"artist": "John Avon"}),
        ("Bolt [Mark Poole & Quinton Hoover]", {"artist": "Mark Poole & Quinton Hoover"}),
        ("Bolt (MH2) (M10)", {"set_code": "mh2", "tags": ["m10"]}),
    ],
)
def test_hints_are_read_by_kind(name: str, hints: NameHints) -> None:
    """Sets, numbers, artists and languages in the brackets that people use for them."""
    assert parse_name_hints(name) == hints


@pytest.mark.parametrize(
    ("name", "tags"),
    [
        ("Bolt (FOIL)", ["foil"]),
        ("Bolt (Full Art)", ["full art"]),
        ("Bolt (Borderless) [Showcase Frame]", ["borderless", "showcase frame"]),
        ("Bolt (bolt)", ["bolt"]),
        ("Bolt {W}{U}", ["w", "u"]),
    ],
)
def test_what_is_no_hint_is_a_tag(name: str, tags: list[str]) -> None:
    """Words about the picture are neither sets nor artists."""
    assert parse_name_hints(name) == {"tags": tags}


@pytest.mark.parametrize(
    "name", ["Bolt", "Bolt (1)", "Bolt (2)", "Bolt (1993)", "Bolt ()", "Bolt [", "Bolt )(", "", "("]
)
def test_names_without_hints_have_none(name: str) -> None:
    """Copies, years and broken brackets say nothing."""
    assert parse_name_hints(name) == {}


def test_a_hostile_name_is_bounded() -> None:
    """Ten thousand brackets and a long one cost little and store little."""
    hints = parse_name_hints("(" * 5_000 + "[a b c]" * 5_000 + "{" + "9" * 9_000 + "}")

    assert len(str(hints)) < 1_000


def test_hints_are_no_part_of_the_key() -> None:
    """What the hints say cannot make two cards of one name different."""
    assert name_key("Lightning Bolt (MH2) {123} [Christopher Rush]") == name_key("Lightning Bolt")
