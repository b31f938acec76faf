"""Version honesty: an extractor whose readings of fixed pictures change must raise its version."""

from __future__ import annotations

import pytest

from cardpicker.stage_c.extractors.registry import extractor_versions
from cardpicker.tests.golden_readings import Table, changed, dishonest, load, read_all


@pytest.fixture(scope="module")
def fresh() -> Table:
    return read_all()


def test_the_golden_table_is_of_todays_versions() -> None:
    """A raised version comes with its table: python -m cardpicker.tests.golden_readings."""
    versions, _ = load()

    assert versions == extractor_versions()


@pytest.mark.parametrize("extractor", sorted(extractor_versions()))
def test_readings_change_only_with_their_version(extractor: str, fresh: Table) -> None:
    """What one version of an extractor read, it reads again."""
    stored = load()[1][extractor]

    assert stored.keys() == fresh[extractor].keys()
    others = changed(stored, fresh[extractor])
    assert not others, f"raise the version of {extractor} and write the table anew: it reads {others} otherwise"


def test_a_table_is_not_rewritten_over_an_unraised_version() -> None:
    """Another reading under the same version is named; a raised version, or a new picture, is not."""
    old: Table = {"a": {"p": 1}, "b": {"p": 1}, "c": {}}
    new: Table = {"a": {"p": 2}, "b": {"p": 2}, "c": {"q": 1}}

    assert dishonest(old, new, ["a", "c"]) == ["a"]
