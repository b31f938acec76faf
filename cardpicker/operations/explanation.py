"""An explanation of a card's answer as text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cardpicker.operations.text_table import format_table
from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.consensus import RESOLVING_WEIGHT, Rule
from cardpicker.stage_d.explain import USER_WEIGHT, Explanation
from cardpicker.stage_d.suggestions import Suggestion
from cardpicker.stage_d.verdicts import Abstained, Routed, Verdict, Vote

CANDIDATES_SHOWN: Final = 30
NO_MATCH: Final = "no such printing"
#: Rows that the reader stored, as long as the rest together: the JSON has them.
LONG_READINGS: Final = frozenset({"bottom_text"})

RULES: Final[Mapping[Rule, str]] = {
    Rule.NO_PERSON: "no person has voted, and machines alone never settle a card",
    Rule.TOO_LIGHT: f"the winner weighs less than {RESOLVING_WEIGHT / USER_WEIGHT:g} users",
    Rule.SMALL_SHARE: "the winner has less than 60 % of the weight",
    Rule.NO_PERSON_FOR_WINNER: "no person has voted for the winner",
    Rule.RESOLVED: "the winner has the weight of two users or more, at least 60 % of all, and a person's vote",
}


def explanation_lines(explained: Explanation) -> Iterator[str]:
    """Yield the explanation line by line."""
    yield f"card {explained.card_id}: {explained.name}"
    yield f"answer: {_answer(explained)}"
    yield f"rule: {RULES[explained.weighing.rule]} ({explained.weighing.rule.value})"
    if explained.twins:
        yield f"byte-identical cards, votes pooled: {', '.join(map(str, explained.twins))}"
    if explained.not_judged_because:
        yield f"calculators leave it alone: {explained.not_judged_because}; below is what they would say"
    elif not explained.judged_by_todays_rules:
        yield "not judged by today's calculators yet; below is what they will say"
    yield from _readings(explained)
    yield from _candidates(explained)
    yield from _verdicts(explained)
    yield from _votes(explained)


def _answer(explained: Explanation) -> str:
    if explained.printing_id is not None:
        return f"{explained.status}, {_name(explained, explained.printing_id)}"
    return explained.status


def _name(explained: Explanation, printing_id: int | None) -> str:
    if printing_id is None:
        return NO_MATCH
    return explained.printings.get(printing_id, f"printing {printing_id}, no longer known")


def _readings(explained: Explanation) -> Iterator[str]:
    yield ""
    yield "readings, as the calculators understand them"
    rows = [(name, _plain(value)) for name, value in explained.readings.items()]
    yield from _indented(format_table(("reading", "value"), rows) if rows else ["none: there is no evidence"])
    yield "readings, as stored"
    stored = [
        (extractor, _plain(reading))
        for extractor, reading in sorted(explained.stored_readings.items())
        if extractor not in LONG_READINGS
    ]
    yield from _indented(format_table(("extractor", "reading"), stored, widest=110) if stored else ["none"])


def _plain(value: object) -> str:
    if value is None:
        return "not read"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _candidates(explained: Explanation) -> Iterator[str]:
    sections = [("candidates: printings of the card's name", explained.candidates)]
    if explained.line_owners:
        sections.append(("printings of other names that may bear the line", explained.line_owners))
    for title, candidates in sections:
        yield ""
        yield f"{title} ({len(candidates)})"
        yield from _indented(_candidate_table(explained, candidates) if candidates else ["none"])


def _candidate_table(explained: Explanation, candidates: Sequence[Candidate]) -> list[str]:
    headings = ("printing", "artist", "released", "border", "layout", "art off", "lines it may bear")
    rows = [
        (
            _name(explained, candidate.id),
            candidate.artist or "-",
            str(candidate.released_at or "-"),
            candidate.border_color or "-",
            candidate.layout or "-",
            str(explained.art_distances.get(candidate.id, "-")),
            " / ".join(f"{code} {number}" for code, number in candidate.lines),
        )
        for candidate in candidates[:CANDIDATES_SHOWN]
    ]
    more = len(candidates) - len(rows)
    return [*format_table(headings, rows), *([f"… and {more} more"] if more else [])]


def _verdicts(explained: Explanation) -> Iterator[str]:
    yield ""
    yield "verdicts, in the order of the calculators"
    if not explained.verdicts:
        yield "  none: there is no evidence to judge"
    for name, verdict in explained.verdicts.items():
        yield f"  {name}: {_verdict(explained, verdict)}"
        yield from _ranking(explained, verdict)
    if explained.question:
        question = explained.question
        yield (
            f"  question stored for a person: {question['reason']}, {question['detail']};"
            f" answerability {question['answerability']} of 1000"
        )


def _verdict(explained: Explanation, verdict: Verdict) -> str:
    match verdict:
        case Vote():
            grounds = f"; {_grounds(verdict.evidence)}" if verdict.evidence else ""
            return f"votes for {_name(explained, verdict.printing_id)} at {verdict.confidence:.2f}{grounds}"
        case Abstained():
            return f"abstains, {verdict.reason.value}{_survivors(explained, verdict.survivors)}"
        case Routed():
            left = _survivors(explained, verdict.survivors)
            return f"asks a person, {verdict.reason.value}: {verdict.detail}{left}{_suggested(verdict.suggestions)}"


def _ranking(explained: Explanation, verdict: Verdict) -> Iterator[str]:
    """Yield the likeliest printings with what each reading multiplied their odds by."""
    for ranked in getattr(verdict, "ranking", ()):
        yield f"    {ranked.probability:.4f}  {_name(explained, ranked.printing_id)}"
        for reason in ranked.reasons:
            yield f"            x{reason.odds:<8g} {reason.feature} {reason.read}: {reason.said}"


def _survivors(explained: Explanation, survivors: Sequence[int]) -> str:
    if not survivors:
        return ""
    shown = "; ".join(_name(explained, pk) for pk in survivors[:CANDIDATES_SHOWN])
    more = len(survivors) - CANDIDATES_SHOWN
    return f"; still possible: {shown}{f' and {more} more' if more > 0 else ''}"


def _suggested(suggestions: Sequence[Suggestion]) -> str:
    shown = ", ".join(f"{each.name} ({each.by.value} {each.similarity:.2f})" for each in suggestions)
    return f"; may mean: {shown}" if shown else ""


def _grounds(evidence: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_plain(value)}" for name, value in evidence.items())


def _votes(explained: Explanation) -> Iterator[str]:
    yield ""
    yield f"live votes ({len(explained.votes)})"
    headings = ("vote", "voter", "card", "weight", "confidence", "run", "counts")
    rows = [
        (
            _name(explained, vote.printing_id),
            vote.voter,
            str(vote.card_id),
            f"{vote.weight:g}",
            "-" if vote.confidence is None else f"{vote.confidence:.2f}",
            vote.run_id or "-",
            f"no: {vote.unheard}" if vote.unheard else "yes",
        )
        for vote in explained.votes
    ]
    yield from _indented(format_table(headings, rows, right=("weight", "confidence")) if rows else ["none"])
    weights = [
        f"{_name(explained, outcome)} {weight / USER_WEIGHT:g}"
        for outcome, weight in sorted(explained.weighing.weights.items(), key=lambda item: -item[1])
    ]
    if weights:
        yield f"weights by outcome, machines capped at one user: {'; '.join(weights)}"
    for vote in explained.superseded:
        name = _name(explained, vote["printing_id"])
        yield f"  was once: {vote['voter']} for {name} (run {vote['run_id'] or '-'}), {vote['change'].lower()}"


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in lines]
