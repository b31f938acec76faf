"""The file of parameters is what the code expects, and one that is not is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cardpicker.stage_d.scorer_parameters import (
    PARAMETERS_PATH,
    ScorerParametersError,
    load_parameters,
    parse_parameters,
    scorer_parameters,
)
from cardpicker.stage_d.scorer_tables import BANDS, FEATURES, ROUTES, TABLES


def stored() -> dict[str, Any]:
    """Return the package's file, decoded."""
    content: dict[str, Any] = json.loads(PARAMETERS_PATH.read_text(encoding="utf-8"))
    return content


def test_the_package_s_parameters_fit_the_code() -> None:
    """Every table, category, feature and route has its figure, each a probability."""
    parameters = scorer_parameters()

    assert parameters.version >= 1
    assert {table: tuple(rates) for table, rates in parameters.rates.items()} == dict(TABLES)
    assert set(parameters.weights) == set(FEATURES)
    assert (set(parameters.something_else), set(parameters.slip)) == (set(ROUTES), set(BANDS))
    every = [
        share for rates in parameters.rates.values() for rate in rates.values() for share in (rate.match, rate.other)
    ]
    every += [*parameters.something_else.values(), *parameters.slip.values(), parameters.unknown_artist]
    assert all(0.0 < share < 1.0 for share in every)


def test_the_threshold_was_proven_on_cards_that_nothing_was_fitted_to() -> None:
    """The lower end of the interval of its precision is at least 0.99."""
    proof = stored()["from"]["held_out"]

    assert scorer_parameters().threshold >= 0.98
    assert proof["precision_low"] >= 0.99
    assert proof["votes"] > 380  # Fewer cannot prove it, even all right.


def without(content: dict[str, Any]) -> None:
    del content["tables"]["rarity"]


def certain(content: dict[str, Any]) -> None:
    content["tables"]["rarity"]["agrees"]["match"] = 1.0


def unknown(content: dict[str, Any]) -> None:
    content["tables"]["rarity"]["maybe"] = {"match": 0.5, "other": 0.5}


def reversed_(content: dict[str, Any]) -> None:
    content["tables"]["rarity"]["agrees"] = {"match": 0.1, "other": 0.9}


def other_form(content: dict[str, Any]) -> None:
    content["form"] = 99


def surer(content: dict[str, Any]) -> None:
    content["temperature"] = 0.5


def heavy(content: dict[str, Any]) -> None:
    content["weights"]["frame"] = 2.0


def worded(content: dict[str, Any]) -> None:
    content["threshold"] = "high"


@pytest.mark.parametrize("spoil", [without, certain, unknown, reversed_, other_form, surer, heavy, worded])
def test_parameters_that_do_not_fit_are_refused(spoil: Callable[[dict[str, Any]], None]) -> None:
    """Half a model must not judge."""
    content = stored()
    parse_parameters(content)
    spoil(content)

    with pytest.raises(ScorerParametersError):
        parse_parameters(content)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"form": 1}'])
def test_a_file_that_is_no_file_of_parameters_is_refused(tmp_path: Path, text: str) -> None:
    """Its name is in the error."""
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(ScorerParametersError, match=r"other\.json"):
        load_parameters(path)
