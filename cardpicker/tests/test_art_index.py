"""Art hashes: distances, nearest neighbors, and who they may remove."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardpicker.stage_d.art_index import MARGIN, MATCH_DISTANCE, ArtIndex, art_distances, keep_by_art

#: Near each other often enough that ties, twins and margins occur.
HASHES = st.one_of(
    st.integers(min_value=-(1 << 63), max_value=(1 << 64) - 1),
    st.integers(min_value=0, max_value=255),
)
MAYBE = st.one_of(st.none(), HASHES)


def brute_distance(left: int, right: int) -> int:
    """Count differing bits one by one."""
    return sum(((left >> bit) & 1) != ((right >> bit) & 1) for bit in range(64))


@settings(deadline=None)
@given(card=MAYBE, candidates=st.lists(MAYBE, max_size=20))
def test_distances_count_the_bits_that_differ(card: int | None, candidates: list[int | None]) -> None:
    """Signed and unsigned patterns mix; None and 0 have no distance to anything."""
    expected = [brute_distance(card, other) if card and other else None for other in candidates]
    assert art_distances(card, candidates) == expected


@settings(deadline=None)
@given(cards=st.lists(MAYBE, max_size=6), arts=st.lists(MAYBE, max_size=60))
def test_nearest_is_what_a_plain_search_finds(cards: list[int | None], arts: list[int | None]) -> None:
    """Distance, all that have the nearest hash, and the distance of the next art are exact."""
    index = ArtIndex(list(range(100, 100 + len(arts))), arts)
    usable = [(pk, art % (1 << 64)) for pk, art in enumerate(arts, start=100) if art]
    for card, found in zip(cards, index.nearest(cards), strict=True):
        if not card or not usable:
            assert found is None
            continue
        ranked = sorted({(brute_distance(card, art), art) for _, art in usable})
        assert found is not None
        assert found.distance == ranked[0][0]
        assert list(found.ids) == sorted(pk for pk, art in usable if art == ranked[0][1])
        assert found.runner_up == (ranked[1][0] if len(ranked) > 1 else None)


def test_an_unhashed_catalog_is_near_nothing() -> None:
    """A thousand arts whose hash is 0 or missing match nobody, a flat card matches nobody."""
    index = ArtIndex(range(1000), [0, None] * 500)
    assert len(index) == 0
    assert index.nearest([0, None, 1]) == [None, None, None]
    assert ArtIndex([1], [1]).nearest([0]) == [None]


@settings(deadline=None)
@given(distances=st.lists(st.one_of(st.none(), st.integers(0, 64)), max_size=12))
def test_art_removes_only_other_art_beside_a_match(distances: list[int | None]) -> None:
    """Unknown art always stays, so does the nearest, and nothing goes unless the nearest is near enough."""
    kept = keep_by_art(distances)
    known = [distance for distance in distances if distance is not None]
    assert all(stays for stays, distance in zip(kept, distances, strict=True) if distance is None)
    if not known or min(known) > MATCH_DISTANCE:
        assert all(kept)
        return
    for stays, distance in zip(kept, distances, strict=True):
        assert distance is None or stays == (distance < min(known) + MARGIN)


def test_printings_that_share_the_art_are_never_told_apart() -> None:
    """Six printings of one art stay six, whatever the distance."""
    assert keep_by_art([0] * 6) == [True] * 6
    assert keep_by_art([7, 7, 7, 40]) == [True, True, True, False]


@pytest.mark.parametrize(
    ("distance", "runner_up", "is_match"),
    [(20, 25, True), (20, 24, False), (21, 60, False), (0, None, True), (3, 3, False)],
)
def test_a_match_takes_threshold_and_margin(distance: int, runner_up: int | None, is_match: bool) -> None:
    """The nearest art counts only up to 20 bits off and 5 bits nearer than the next."""
    arts = [(1 << distance) - 1 if distance else 0]
    if runner_up is not None:
        arts.append(((1 << runner_up) - 1) << (64 - runner_up))
    # The card is a pattern of its own; arts differ from it in as many bits as are asked for.
    card = 0x0F0F_33CC_55AA_9669
    found = ArtIndex(range(len(arts)), [card ^ art for art in arts]).nearest([card])[0]
    assert found is not None
    assert (found.distance, found.runner_up, found.is_match) == (distance, runner_up, is_match)
