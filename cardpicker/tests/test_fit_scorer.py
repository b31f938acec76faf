"""The fit of the scorer: repeatable cards, honest counts, and intervals that are what they claim."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.scorer_parameters import parse_parameters
from cardpicker.stage_d.scorer_tables import AGREES, DIFFERS, FOREIGN, NAMED, SET_AND_NUMBER
from cardpicker.tests.stage_d_cases import candidate, subject
from scripts.ops.fit_scorer import across_folds, fitted, judged
from scripts.ops.fit_scorer_cards import make_card
from scripts.ops.scorer_fit.calibration import Scored, choose_threshold, mean_surprise, precision_at, scored, wilson
from scripts.ops.scorer_fit.figure import bins, calibration_error, draw_diagram
from scripts.ops.scorer_fit.printings import Art, Printings, load_printings
from scripts.ops.scorer_fit.rates import CASE_WEIGHT, Counts, count, parameters_from
from scripts.ops.scorer_fit.samples import Sample
from scripts.ops.scorer_fit.scenarios import Kind, draw_scenario, make_deck

PRINTINGS = Path(__file__).resolve().parents[2] / "sample_catalogue" / "printings.jsonl"
XLN = candidate(1, "xln", "65", year=2017, artist="Tyler Jacobson")
DOM = candidate(2, "dom", "60", year=2018, artist="Kev Walker")


@pytest.fixture(scope="module")
def printings() -> Printings:
    """Return the sample catalog's printings."""
    return load_printings(PRINTINGS)


def shown(*pool: Candidate, truth: int | None = 1, is_case: bool = False, **read: Any) -> Sample:
    """Return a card that shows the first printing, unless ``truth`` says otherwise."""
    sets = pool[0].printed_sets if truth is not None else frozenset[str]()
    return Sample(key="k", kind="test", subject=subject(*pool, **read), truth=truth, truth_sets=sets, is_case=is_case)


def test_scenarios_repeat_and_are_of_every_kind(printings: Printings) -> None:
    """The same seed gives the same card; what a missing printing's card is missing is hidden."""
    deck = make_deck(printings)
    drawn = [draw_scenario(deck, random.Random(f"1-{i}")) for i in range(400)]

    assert drawn == [draw_scenario(deck, random.Random(f"1-{i}")) for i in range(400)]
    assert set(Counter(scenario.kind for scenario in drawn)) == set(Kind)
    for scenario in drawn:
        assert (scenario.truth is None) == (scenario.kind not in (Kind.PRINTING, Kind.FOREIGN))
        assert bool(scenario.hidden) == (scenario.kind is Kind.MISSING)


def test_a_card_is_the_same_each_time_it_is_made_and_is_read_by_stage_c() -> None:
    """Drawn, spoiled and read twice."""
    first, second = (make_card(str(PRINTINGS), 1, 4) for _ in range(2))

    assert first == second
    assert {"collector_line", "artist", "quality"} <= first["readings"].keys()


def test_hidden_printings_are_no_candidates_and_art_is_shared_by_illustration(printings: Printings) -> None:
    """The catalog that a card is judged by lacks what its scenario hides."""
    name = "Opt"
    every = printings.subject(name, {}).candidates
    first = every[0]
    art = Art(illustration_id=printings.rows[first.id].illustration_id, hash=77)

    left = printings.subject(name, {}, hidden=[first.id], art=art).candidates

    assert {c.id for c in left} == {c.id for c in every} - {first.id}
    for each in left:
        same = printings.rows[each.id].illustration_id == art.illustration_id
        assert each.art_hash in ((None, 77) if same else (None, each.art_hash))


def test_a_printing_shown_counts_as_match_and_something_else_against_all() -> None:
    """The other printings of a name say nothing of something else; a real case counts more."""
    read: dict[str, Any] = {"set_code": "xln", "number": "65", "artist": "Tyler Jacobson"}
    matching, nothing = shown(XLN, DOM, **read), shown(XLN, DOM, truth=None, artist="Tyler Jacobson")

    counts = count([matching, nothing, shown(XLN, is_case=True, **read)])

    assert counts.match["line/sure", SET_AND_NUMBER] == 1 + CASE_WEIGHT
    assert counts.match["artist/band", DIFFERS] == 0
    assert (counts.other["artist/band", AGREES], counts.other["artist/band", DIFFERS]) == (0.5, 0.5)
    assert (counts.routes[NAMED, False], counts.routes[NAMED, True]) == (1 + CASE_WEIGHT, 1)


def test_a_misread_number_of_an_unknown_name_is_a_slip() -> None:
    """It is neither a match of the owner that was found nor something else."""
    read: dict[str, Any] = {"set_code": "neo", "number": "172", "language": "de"}
    other = candidate(9, "neo", "172")
    slipped = Sample(
        key="k", kind="foreign", subject=subject(owners=(other,), **read), truth=5, truth_sets=frozenset({"neo"})
    )

    counts = count([slipped])

    assert counts.lines["sure", True] == 1
    assert counts.routes[FOREIGN, True] == counts.routes[FOREIGN, False] == 0


def test_nothing_counted_still_gives_parameters_that_fit_the_code() -> None:
    """Then agreement says nothing, and nothing is certain."""
    parameters = parse_parameters(parameters_from(Counts(), temperature=1.0, threshold=0.99, version=7))

    assert parameters.version == 7
    assert parameters.support["rarity"][AGREES] == pytest.approx(0.0, abs=1e-3)


def test_rates_follow_what_was_counted() -> None:
    """More cards that agree make agreement worth more, and the scorer surer."""
    read: dict[str, Any] = {"set_code": "xln", "number": "65", "artist": "Tyler Jacobson", "copyright_year": 2017}
    samples = [shown(XLN, DOM, **read) for _ in range(40)]
    samples += [shown(XLN, DOM, truth=None, artist="Somebody Else", number="200") for _ in range(10)]
    few, many = (fitted(count(samples[::step]), 1.0, 0.9, 1) for step in (5, 1))

    assert many.support["line/sure"][SET_AND_NUMBER] > few.support["line/sure"][SET_AND_NUMBER] > 0
    assert scored(samples[:1], many)[0].probability > scored(samples[:1], few)[0].probability
    assert judged(samples[0], many) == "right"
    assert judged(samples[-1], many) == "abstained"
    temperature, cards = across_folds(samples, Counts(), 1)
    assert temperature >= 1.0 and len(cards) == len(samples)


def card(probability: float, *, right: bool = True, may_vote: bool = True) -> Scored:
    """Return a scored card."""
    return Scored(sample=shown(XLN), probability=probability, right=right, of_truth=0.9, may_vote=may_vote, left=True)


def test_the_threshold_is_the_lowest_that_is_proven() -> None:
    """Votes that are forbidden prove nothing; without proof the highest threshold stands."""
    cards = [card(0.995) for _ in range(500)] + [card(0.96, right=False) for _ in range(20)]
    cards += [card(0.999, right=False, may_vote=False) for _ in range(9)]

    assert choose_threshold(cards, (0.95, 0.98, 0.99), 0.99).threshold == 0.98
    assert choose_threshold(cards[:50], (0.95, 0.98, 0.99), 0.99).threshold == 0.99
    assert precision_at(cards, 0.95).right == 500 and precision_at(cards, 0.95).votes == 520


@pytest.mark.parametrize(
    ("right", "total", "low", "high"), [(0, 0, 0.0, 1.0), (381, 381, 0.99, 1.0), (9, 10, 0.5958, 0.9821)]
)
def test_the_interval_is_wilson_s(right: int, total: int, low: float, high: float) -> None:
    """Known values; 381 votes, all right, are the fewest that prove 0.99."""
    assert wilson(right, total) == pytest.approx((low, high), abs=1e-4)


def test_the_diagram_shows_every_bin_with_cards(tmp_path: Path) -> None:
    """A picture of a fixed size, and the distance between probability and share."""
    cards = [card(0.9, right=i < 9) for i in range(10)] + [card(0.2, right=False) for _ in range(10)]

    draw_diagram(cards, tmp_path / "figure.png", "a caption\nof two lines")

    assert [(each.cards, each.right) for each in bins(cards)] == [(10, 0), (10, 9)]
    assert calibration_error(cards) == pytest.approx(0.1)
    assert mean_surprise(cards) == pytest.approx(0.1054, abs=1e-4)
    with Image.open(tmp_path / "figure.png") as picture:
        assert picture.size == (1000, 1130)
