"""Settings from the environment: typed, bounded, frozen, and refused with the name of the variable."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from cardpicker.environment import Setting, describe, load, setting
from cardpicker.stage_c.settings import StageCSettings
from scripts.ops.settings_page import ROOMS


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One setting of each kind."""

    count: int = setting("COUNT", 3, "How many.", low=1, high=9)
    share: float = setting("SHARE", 0.5, "How much.", low=0, high=1)
    is_on: bool = setting("IS_ON", False, "Whether.")
    name: str = setting("NAME", "none", "What.")
    color: str = setting("COLOR", "red", "Which.", choices=("red", "green"))
    computed: int = setting("COMPUTED", lambda: 7, "As the host has it.", low=1)
    at_most: float = setting("AT_MOST", 0.0, "Bounded above only.", high=2)
    derived: int = 5


def test_absent_variables_leave_the_defaults() -> None:
    """A default is a value or what a function finds on this host; a plain field is nobody's variable."""
    assert load(Sample, {}) == Sample()
    assert (Sample().count, Sample().computed, Sample().derived) == (3, 7, 5)
    assert load(Sample, {"DERIVED": "9", "derived": "9"}).derived == 5


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("COUNT", "1", "count", 1),
        ("COUNT", " 9\n", "count", 9),
        ("SHARE", "0", "share", 0.0),
        ("SHARE", "1e-2", "share", 0.01),
        ("IS_ON", "1", "is_on", True),
        ("IS_ON", "Yes", "is_on", True),
        ("IS_ON", "TRUE", "is_on", True),
        ("IS_ON", "on", "is_on", True),
        ("IS_ON", "0", "is_on", False),
        ("IS_ON", "no", "is_on", False),
        ("IS_ON", "", "is_on", False),
        ("NAME", "", "name", ""),
        ("NAME", " a b ", "name", "a b"),
        ("COLOR", "green", "color", "green"),
        ("COMPUTED", "2", "computed", 2),
        ("AT_MOST", "-1e9", "at_most", -1e9),
    ],
)
def test_variable_is_read_as_its_type(variable: str, text: str, field: str, value: Any) -> None:
    """Bounds are inclusive, spaces around a value are nothing, and no other setting changes."""
    loaded = load(Sample, {variable: text, "UNRELATED": "x"})

    assert getattr(loaded, field) == value
    assert type(getattr(loaded, field)) is type(value)
    assert loaded == dataclasses.replace(Sample(), **{field: value})


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("COUNT", "0", "1 to 9"),
        ("COUNT", "10", "1 to 9"),
        ("COUNT", "2.5", "not a whole number"),
        ("COUNT", "", "not a whole number"),
        ("COUNT", "many", "not a whole number"),
        ("SHARE", "1.001", "0 to 1"),
        ("SHARE", "-0.001", "0 to 1"),
        ("SHARE", "inf", "0 to 1"),
        ("SHARE", "nan", "not a number"),
        ("SHARE", "half", "not a number"),
        ("IS_ON", "maybe", "1 or 0"),
        ("IS_ON", "2", "1 or 0"),
        ("COLOR", "blue", "red, green"),
        ("COLOR", "", "red, green"),
        ("COMPUTED", "0", "at least 1"),
        ("AT_MOST", "2.1", "at most 2"),
    ],
)
def test_value_that_is_not_allowed_is_refused_by_name(variable: str, text: str, says: str) -> None:
    """The message has the variable, the value and what is allowed, on one line."""
    with pytest.raises(ImproperlyConfigured) as raised:
        load(Sample, {variable: text})

    message = str(raised.value)
    assert message.startswith(f"{variable}={text!r} ")
    assert says in message
    assert len(message.splitlines()) == 1


def test_loaded_settings_cannot_be_changed() -> None:
    """What a process started with is what it goes on with."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(Sample, {}).count = 4  # type: ignore[misc]


def test_settings_are_described_in_their_order() -> None:
    """Each with its variable and the allowed values in words, and only what a variable sets."""
    described = {each.variable: each.range_text for each in describe(Sample)}

    assert described == {
        "COUNT": "1 to 9",
        "SHARE": "0 to 1",
        "IS_ON": "",
        "NAME": "",
        "COLOR": "red, green",
        "COMPUTED": "at least 1",
        "AT_MOST": "at most 2",
    }
    assert list(described)[:3] == ["COUNT", "SHARE", "IS_ON"]


REAL = [(room, each) for room in ROOMS.values() for each in describe(room)]


@pytest.mark.parametrize(("room", "declared"), REAL, ids=lambda value: getattr(value, "variable", ""))
def test_real_setting_takes_its_bounds_and_nothing_beyond(room: type[Any], declared: Setting) -> None:
    """Every bound of every setting holds, its default lies within, and it says what it is for."""
    assert declared.help.endswith(".")
    if not callable(declared.default):
        load(room, {declared.variable: str(declared.default)})
    for bound, beyond in ((declared.low, -1), (declared.high, 1)):
        if bound is None:
            continue
        load(room, {declared.variable: f"{bound:.10g}"})
        with pytest.raises(ImproperlyConfigured, match=declared.variable):
            load(room, {declared.variable: f"{bound + beyond:.10g}"})
    for choice in declared.choices:
        load(room, {declared.variable: choice})


def test_computed_defaults_lie_in_their_ranges() -> None:
    """What a host's cores make of a default is a value that could be set."""
    workers = StageCSettings().compute_workers

    assert load(StageCSettings, {"STAGE_C_COMPUTE_WORKERS": str(workers)}).compute_workers == workers
    assert 1 <= workers <= 3
    assert StageCSettings(compute_workers=2).queue_depth == 4
    assert StageCSettings(compute_workers=2, pool_queue_depth=9).queue_depth == 9


def test_no_variable_has_two_meanings() -> None:
    """A variable belongs to one setting."""
    variables = [declared.variable for _, declared in REAL]

    assert len(set(variables)) == len(variables)
