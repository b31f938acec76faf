"""What holds of consensus whatever the votes: machines suggest, people resolve, order is nothing, twins are one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cardpicker.models import PrintingTagStatus, VoteSource
from cardpicker.stage_d.consensus import HUMAN_SOURCES, Ballot, LiveVote, decide, pool_ballots, weigh

# No deadline: how long an example takes is the host's load, not the rule's.
settings.register_profile(
    "steady", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150
)
settings.load_profile("steady")

OUTCOMES = st.sampled_from([1, 2, 3, None])
MACHINE = st.sampled_from([VoteSource.OCR, VoteSource.DEDUCTION])
PERSON = st.sampled_from([VoteSource.USER, VoteSource.ADMIN])
BALLOTS = st.lists(st.builds(Ballot, OUTCOMES, MACHINE | PERSON), max_size=12)
MACHINES = st.lists(st.builds(Ballot, OUTCOMES, MACHINE), max_size=40)

CARDS = (1, 2, 3)
VOTERS = st.sampled_from(["ann", "bob", "cas", "machine"])
STARTED = datetime(2026, 1, 1, tzinfo=UTC)


@given(MACHINES)
def test_machines_alone_never_resolve(ballots: list[Ballot]) -> None:
    """However many, for whatever."""
    assert decide(ballots).status == PrintingTagStatus.UNRESOLVED


@given(BALLOTS, st.randoms())
def test_order_never_matters(ballots: list[Ballot], random: Random) -> None:
    """Neither for the decision nor for the rule that led to it."""
    shuffled = list(ballots)
    random.shuffle(shuffled)

    assert weigh(shuffled) == weigh(ballots)


@given(BALLOTS, PERSON)
def test_an_agreeing_person_never_unresolves(ballots: list[Ballot], person: VoteSource) -> None:
    """Who votes for what is settled leaves it settled."""
    decision = decide(ballots)
    if decision.status == PrintingTagStatus.UNRESOLVED:
        return

    assert decide([*ballots, Ballot(decision.printing_id, person)]) == decision


@given(BALLOTS)
def test_a_settled_outcome_has_a_person_weight_and_share(ballots: list[Ballot]) -> None:
    """The three conditions of the rule, counted again from the ballots."""
    weighing = weigh(ballots)
    if weighing.decision.status == PrintingTagStatus.UNRESOLVED:
        return
    winner = weighing.decision.printing_id

    assert any(ballot.printing_id == winner and ballot.source in HUMAN_SOURCES for ballot in ballots)
    assert weighing.weights[winner] >= 4
    assert weighing.weights[winner] / sum(weighing.weights.values()) >= 0.6


@given(BALLOTS, MACHINES)
def test_machines_never_turn_one_answer_into_another(ballots: list[Ballot], machines: list[Ballot]) -> None:
    """They may complete or unsettle an answer of people; they never swap it."""
    people = [ballot for ballot in ballots if ballot.source in HUMAN_SOURCES]
    alone, together = decide(people), decide([*people, *machines])
    if alone.status != PrintingTagStatus.UNRESOLVED:
        assert together == alone


@st.composite
def pools(draw: st.DrawFn) -> list[LiveVote]:
    """Draw the live votes of an image of three cards: one a card and voter at most, each of another moment."""
    places = draw(st.lists(st.tuples(st.sampled_from(CARDS), VOTERS), unique=True, max_size=10))
    moments = draw(st.permutations(range(len(places))))
    return [
        LiveVote(
            card_id,
            voter,
            Ballot(draw(OUTCOMES), VoteSource.OCR if voter == "machine" else VoteSource.USER),
            draw(st.sampled_from(["", "now", "before"])),
            (STARTED + timedelta(seconds=moment), index),
        )
        for index, ((card_id, voter), moment) in enumerate(zip(places, moments, strict=True))
    ]


@given(pools(), st.randoms())
def test_pooled_twins_equal_one_card_that_had_all_their_votes(votes: list[LiveVote], random: Random) -> None:
    """Cast in their order on one card, each voter's last vote would stand: the pool comes to the same, in any order."""
    on_one_card: dict[str, Ballot] = {}
    for vote in sorted(votes, key=lambda vote: vote.age):
        if vote.image_version != "before":
            on_one_card[vote.voter] = vote.ballot
    shuffled = list(votes)
    random.shuffle(shuffled)

    heard = pool_ballots(shuffled, dict.fromkeys(CARDS, "now"))

    assert {voter: vote.ballot for voter, vote in heard.items()} == on_one_card
    assert weigh(vote.ballot for vote in heard.values()) == weigh(on_one_card.values())
