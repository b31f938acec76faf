"""Fallback: what join-key left, where everything read together makes one printing all but certain.

Pure. The scorer weighs the candidates; here stands when that is a vote. Some contradictions forbid one whatever the odds:
they came out of wrong votes, and no rate measured on few of them should undo that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cardpicker.stage_d import scorer_tables as t
from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.scorer import Scores, ranking, score
from cardpicker.stage_d.scorer_comparisons import line_band
from cardpicker.stage_d.scorer_parameters import ScorerParameters, scorer_parameters
from cardpicker.stage_d.subjects import Subject
from cardpicker.stage_d.verdicts import Abstained, Ranked, SkipReason, Verdict, Vote

#: How many printings are explained, and how many are kept as still possible.
EXPLAINED: Final = 5
MAX_SURVIVORS: Final = 60
#: A printing this many times less probable than the likeliest is no longer possible.
SURVIVAL_ODDS: Final = 200.0
#: Printings whose probabilities differ less than this are not told apart.
APART_ODDS: Final = 20.0

#: Categories that contradict a printing, by feature.
CONTRADICTIONS: Final = {
    "line": frozenset({t.SET_ALONE, t.NUMBER_ALONE, t.NEAR_ALONE, t.NEITHER}),
    "number": frozenset({t.DIFFERS}),
    "set_code": frozenset({t.DIFFERS}),
    "artist": frozenset({t.DIFFERS}),
    "copyright_year": frozenset({t.OLDER}),
    "list_mark": frozenset({t.DIFFERS}),
}
#: A number that was read and is not the printing's leaves it possible, and is no ground for a vote.
SLIPS: Final = frozenset({t.SET_AND_NEAR, t.NEAR})

#: One of these must have been read and agree: art, frame and year only narrow.
NAMING: Final = {
    "line": frozenset({t.SET_AND_NUMBER}),
    "number": frozenset({t.AGREES}),
    "set_code": frozenset({t.AGREES}),
    "artist": frozenset({t.AGREES}),
}
#: The same where the line has found the printing, and therefore agrees with it.
BESIDE_THE_LINE: Final = {"artist": frozenset({t.AGREES}), "copyright_year": frozenset({t.SAME_YEAR})}


def judge_fallback(subject: Subject, earlier: Sequence[Verdict] = ()) -> Verdict:
    """Return the printing that is all but certain, or why there is none.

    Args:
        earlier: the verdicts of the calculators before this one; a vote among them leaves nothing to do.
    """
    if any(isinstance(verdict, Vote) for verdict in earlier):
        return Abstained(reason=SkipReason.SETTLED_EARLIER)
    return judge_by_score(subject, scorer_parameters())


def judge_by_score(subject: Subject, parameters: ScorerParameters) -> Verdict:
    """Return the verdict that ``parameters`` lead to."""
    scores = score(subject, parameters)
    survivors = possible(scores)
    if subject.readings.truncated:
        return Abstained(reason=SkipReason.TRUNCATED, survivors=survivors)
    if not scores.candidates:
        return Abstained(reason=SkipReason.UNKNOWN_NAME)
    explained = ranking(scores, parameters, EXPLAINED)
    best = scores.order[0]
    if scores.probabilities[best] >= parameters.threshold and may_vote(subject, scores):
        return _vote(scores, scores.candidates[best], explained, parameters)
    return Abstained(reason=_reason(subject, scores), survivors=survivors, ranking=explained)


def may_vote(subject: Subject, scores: Scores) -> bool:
    """Tell whether nothing forbids a vote for the likeliest candidate, however probable it is."""
    if subject.readings.truncated or not scores.candidates:
        return False
    if scores.route != t.NAMED and line_band(subject.readings) is None:
        return False
    categories = scores.categories(scores.order[0])
    grounds = NAMING if scores.route == t.NAMED else BESIDE_THE_LINE
    is_named = any(categories.get(feature) in agrees for feature, agrees in grounds.items())
    return is_named and not SLIPS.intersection(categories.values()) and not _contradicted(scores)


def possible(scores: Scores) -> tuple[int, ...]:
    """Return the printings that are still possible, likeliest first."""
    if not scores.candidates:
        return ()
    least = scores.probabilities[scores.order[0]] / SURVIVAL_ODDS
    kept = [place for place in scores.order[:MAX_SURVIVORS] if scores.probabilities[place] >= least]
    return tuple(scores.candidates[place].id for place in kept)


def _contradicted(scores: Scores) -> bool:
    """Tell whether something that was read contradicts even the likeliest candidate."""
    categories = scores.categories(scores.order[0])
    return any(category in CONTRADICTIONS.get(feature, ()) for feature, category in categories.items())


def _reason(subject: Subject, scores: Scores) -> SkipReason:
    best, *others = (scores.probabilities[place] for place in scores.order[:2])
    is_close = bool(others) and others[0] * APART_ODDS >= best
    if scores.route != t.NAMED:
        return SkipReason.SAME_LINE if is_close else SkipReason.UNKNOWN_NAME
    if _contradicted(scores):
        return SkipReason.NONE_FITS
    return SkipReason.AMBIGUOUS if is_close else SkipReason.TOO_LITTLE


def _vote(scores: Scores, printing: Candidate, explained: tuple[Ranked, ...], parameters: ScorerParameters) -> Vote:
    best = explained[0]
    runner_up = explained[1] if len(explained) > 1 else None
    said = [f"{reason.feature} {reason.read}: {reason.said} (x{reason.odds:g})" for reason in best.reasons]
    return Vote(
        printing_id=printing.id,
        confidence=best.probability,
        evidence={
            "basis": "all readings together" if scores.route == t.NAMED else "whole line, name unknown",
            "reasons": "; ".join(said),
            "something_else": round(scores.something_else, 4),
            "runner_up": runner_up.printing_id if runner_up else None,
            "runner_up_probability": runner_up.probability if runner_up else None,
            "parameters": parameters.version,
        },
        ranking=explained,
    )
