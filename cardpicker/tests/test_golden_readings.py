"""Version honesty: an extractor whose readings of fixed pictures change must raise its version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cardpicker.stage_c.extractors.registry import extractor_versions
from cardpicker.tests.golden_readings import TABLE, dishonest, read_all


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(TABLE.read_text())
    return table


@pytest.fixture(scope="module")
def fresh() -> dict[str, Any]:
    return {**read_all()}


def test_the_golden_table_is_of_todays_versions(stored: dict[str, Any]) -> None:
    """A raised version comes with its table: python -m cardpicker.tests.golden_readings."""
    assert stored["versions"] == extractor_versions()


@pytest.mark.parametrize("extractor", sorted(extractor_versions()))
def test_readings_change_only_with_their_version(extractor: str, stored: dict[str, Any], fresh: dict[str, Any]) -> None:
    """What one version of an extractor read, it reads again."""
    now = json.loads(json.dumps(fresh[extractor]))
    changed = {name for name, reading in now.items() if reading != stored["readings"][extractor].get(name)}

    assert (
        not changed
    ), f"raise the version of {extractor} and write the table anew: it reads {sorted(changed)} otherwise"


def test_a_table_is_not_rewritten_over_an_unraised_version() -> None:
    """Another reading under the same version is named; a raised version, or a new picture, is not."""
    old: dict[str, Any] = {
        "versions": {"a": 1, "b": 1, "c": 1},
        "readings": {"a": {"p": {"x": 1}}, "b": {"p": {"x": 1}}, "c": {}},
    }
    new: dict[str, Any] = {"a": {"p": {"x": 2}}, "b": {"p": {"x": 2}}, "c": {"q": {"x": 1}}}

    assert dishonest(old, new, {"a": 1, "b": 2, "c": 1}) == ["a"]
