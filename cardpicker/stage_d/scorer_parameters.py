"""The scorer's parameters: measured rates, priors, temperature and threshold, from a versioned file beside this one.

The file is written by ``scripts/ops/fit_scorer.py`` and never by hand. It is read once and checked against the tables that
the code compares by; a file that does not fit stops the process rather than judge by half a model.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from cardpicker.stage_d.scorer_tables import BANDS, FEATURES, ROUTES, TABLES, feature_of

PARAMETERS_PATH: Final = Path(__file__).with_name("scorer_parameters.json")
#: Of the file's form; another one is of another code.
FORM: Final = 1


class ScorerParametersError(Exception):
    """The parameters do not fit the code; the text says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often a comparison comes out so: for the printing shown, and for one that is not."""

    match: float
    other: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerParameters:
    """Everything that the scorer knows beside the readings and the catalog."""

    version: int
    digest: str  #: Of the file's text: what was judged by another file is judged again.
    rates: Mapping[str, Mapping[str, Rate]]
    weights: Mapping[str, float]  #: By feature, 0 to 1: below 1 where it is weak or partly said by another one.
    something_else: Mapping[str, float]  #: By route: the probability, before anything is compared, that none is shown.
    slip: Mapping[str, float]  #: By band: how often a whole line that is some printing's is another one's, misread.
    unknown_artist: float  #: How often two printings of a name are by one artist.
    temperature: float
    threshold: float
    support: Mapping[str, Mapping[str, float]]  #: Weighted logarithms of the ratio of each table's rates.


@lru_cache(maxsize=1)
def scorer_parameters() -> ScorerParameters:
    """Return the parameters of the package."""
    return load_parameters(PARAMETERS_PATH)


def load_parameters(path: Path) -> ScorerParameters:
    """Read and check a file of parameters.

    Raises:
        ScorerParametersError: it is not readable, or does not hold just what the code expects.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return parse_parameters(json.loads(text), digest=hashlib.sha256(text.encode()).hexdigest()[:12])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ScorerParametersError(f"{path.name}: {type(error).__name__}: {error}") from error


def parse_parameters(stored: Mapping[str, Any], *, digest: str = "") -> ScorerParameters:
    """Return the parameters in a decoded file.

    Raises:
        ScorerParametersError: a table or rate is missing, unknown or out of range.
    """
    if stored["form"] != FORM:
        raise ScorerParametersError(f"form {stored['form']!r}, not {FORM}")
    rates = {table: _table(table, categories) for table, categories in stored["tables"].items()}
    _same_keys("tables", rates, TABLES)
    weights = {feature: float(weight) for feature, weight in stored["weights"].items()}
    _same_keys("weights", weights, FEATURES)
    something_else, slip = dict(stored["something_else"]), dict(stored["slip"])
    _same_keys("something_else", something_else, ROUTES)
    _same_keys("slip", slip, BANDS)
    for name, values in (("something_else", something_else), ("slip", slip)):
        for key, value in values.items():
            _fraction(f"{name} {key}", value)
    for feature, weight in weights.items():
        if not 0.0 < weight <= 1.0:
            raise ScorerParametersError(f"weight of {feature}: {weight}")
    if not stored["temperature"] >= 1.0:
        raise ScorerParametersError(
            f"temperature {stored['temperature']}: below 1 nothing fitted is surer than measured"
        )
    return ScorerParameters(
        version=int(stored["version"]),
        digest=digest,
        rates=rates,
        weights=weights,
        something_else=something_else,
        slip=slip,
        unknown_artist=_fraction("unknown_artist", stored["unknown_artist"]),
        temperature=float(stored["temperature"]),
        threshold=_fraction("threshold", stored["threshold"]),
        support={table: _support(table, categories, weights) for table, categories in rates.items()},
    )


def _table(table: str, stored: Mapping[str, Any]) -> dict[str, Rate]:
    _same_keys(table, stored, TABLES.get(table, ()))
    return {
        category: Rate(
            match=_fraction(f"{table}, {category}, match", stored[category]["match"]),
            other=_fraction(f"{table}, {category}, other", stored[category]["other"]),
        )
        for category in TABLES[table]
    }


def _support(table: str, rates: Mapping[str, Rate], weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weighted log ratios; what agrees most must speak for a printing, and more than anything else does."""
    weight = weights[feature_of(table)]
    support = {category: weight * math.log(rate.match / rate.other) for category, rate in rates.items()}
    best = next(iter(support.values()))
    if best < 0.0 or best < max(support.values()):
        raise ScorerParametersError(f"{table}: its agreement speaks against a printing")
    return support


def _fraction(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 < value < 1.0:
        raise ScorerParametersError(f"{what}: {value!r} is not between 0 and 1")
    return float(value)


def _same_keys(what: str, found: Mapping[str, object], expected: Mapping[str, object] | tuple[str, ...]) -> None:
    if set(found) != set(expected):
        odd = sorted(set(found) ^ set(expected))
        raise ScorerParametersError(f"{what}: {', '.join(odd)} missing or unknown")
