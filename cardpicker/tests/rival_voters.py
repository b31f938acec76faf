"""One of several processes that vote on the same cards at once: ``python -m cardpicker.tests.rival_voters SEED SECONDS``.

It judges, casts, takes back, recomputes and rewrites cards, in an order of its own, and prints what it did as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable


def main(seed: int, seconds: float) -> None:
    """Vote until the time is over."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from django.contrib.auth.models import User

    from cardpicker.models import CanonicalCard, Card, VoteSource
    from cardpicker.stage_d.consensus import recompute_consensus
    from cardpicker.stage_d.run import run_stage_d
    from cardpicker.stage_d.verdicts import Abstained, SkipReason, Vote
    from cardpicker.stage_d.votes import cast_human_vote, retract_vote, write_machine_votes

    draw = random.Random(seed)
    cards = list(Card.objects.order_by("pk"))
    printings = list(CanonicalCard.objects.order_by("pk"))
    person = User.objects.get(username=f"rival-{seed}")
    done: Counter[str] = Counter()

    def judge(ids: list[int]) -> None:
        for report in run_stage_d(ids, run_id=f"rival-{seed}").calculators.values():
            done["already_voted"] += report.already_voted
            done["votes_written"] += report.votes_written

    def same_vote(ids: list[int]) -> None:
        verdict = Vote(printing_id=printings[0].pk, confidence=0.8)
        report = write_machine_votes("rivals", VoteSource.OCR, dict.fromkeys(ids, verdict), f"rival-{seed}")
        done["already_voted"] += report.already_voted
        done["votes_written"] += report.votes_written

    def other_vote(ids: list[int]) -> None:
        verdicts = {
            pk: (
                Vote(printing_id=draw.choice(printings).pk, confidence=0.6)
                if draw.random() < 0.7
                else Abstained(reason=SkipReason.NO_TEXT)
            )
            for pk in ids
        }
        write_machine_votes("churning", VoteSource.DEDUCTION, verdicts, f"rival-{seed}")

    def person_votes(ids: list[int]) -> None:
        card = Card(pk=draw.choice(ids))
        if draw.random() < 0.6:
            cast_human_vote(card, draw.choice([*printings, None]), person)
        else:
            retract_vote(card, person)

    acts: tuple[Callable[[list[int]], object], ...] = (
        judge,
        judge,
        same_vote,
        same_vote,
        other_vote,
        person_votes,
        recompute_consensus,
    )
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        start = draw.randrange(len(cards))
        ids = [card.pk for card in cards[start : start + draw.randint(1, 20)]]
        draw.choice(acts)(ids[:: draw.choice((1, -1))])
        done["acts"] += 1
    print(json.dumps(done))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
