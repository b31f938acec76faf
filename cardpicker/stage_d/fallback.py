"""Fallback: what join-key left, where several readings that do not depend on each other leave one printing.

Pure. Candidates are struck out only by what was read and disagrees; what was not read, or is not known of a printing,
strikes out nobody. The look of the upload (border, frame) plays no part: proxy makers re-render it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.join_key import (
    MIN_LINE_CONFIDENCE,
    effective_set_code,
    is_doubtful,
    mark_contradicts,
    narrow_same_line,
    year_agrees,
    year_contradicts,
)
from cardpicker.stage_d.matching import is_near, same_artist
from cardpicker.stage_d.readings import Readings
from cardpicker.stage_d.subjects import Subject
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Verdict, Vote

MIN_AGREEMENTS: Final = 2
AGREEMENT_CONFIDENCE: Final = 0.65
ONLY_PRINTING_CONFIDENCE: Final = 0.60

#: Features that, where a name has one printing only, say by themselves that the image shows it.
TELLING_ALONE: Final = frozenset({"set_code", "artist"})

#: All that an older frame can agree in.
WITHOUT_SET_CODE: Final = frozenset({"number", "artist", "copyright_year"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A candidate with which nothing read disagrees; a feature is True where it agrees, None where it says nothing."""

    candidate: Candidate
    features: Mapping[str, bool | None]

    @property
    def agreements(self) -> tuple[str, ...]:
        """The features that agree."""
        return tuple(name for name, agrees in self.features.items() if agrees)


def judge_fallback(subject: Subject, earlier: Sequence[Verdict] = ()) -> Verdict:
    """Return the one printing that the readings leave, or why there is none.

    Args:
        earlier: the verdicts of the calculators before this one; a vote among them leaves nothing to do.
    """
    if any(isinstance(verdict, Vote) for verdict in earlier):
        return Abstained(reason=SkipReason.SETTLED_EARLIER)
    if subject.readings.truncated:
        return Abstained(reason=SkipReason.TRUNCATED, survivors=_ids(subject.candidates))
    if not subject.candidates:
        return _by_line(subject)
    pool = [candidate for candidate in subject.candidates if not candidate.is_apart]
    survivors = _survivors(subject, pool)
    best_first = sorted(survivors, key=lambda survivor: (-len(survivor.agreements), survivor.candidate.id))
    ids = _ids([survivor.candidate for survivor in best_first])
    if not ids:
        return Abstained(reason=SkipReason.NONE_FITS if pool else SkipReason.UNKNOWN_NAME)
    only = _outstanding(survivors)
    if only is None:
        return Abstained(reason=SkipReason.AMBIGUOUS, survivors=ids)
    if len(only.agreements) >= MIN_AGREEMENTS:
        return _vote(only, AGREEMENT_CONFIDENCE)
    if len(pool) == 1 and TELLING_ALONE.intersection(only.agreements):
        return _vote(only, ONLY_PRINTING_CONFIDENCE)
    return Abstained(reason=SkipReason.TOO_LITTLE, survivors=ids)


def _outstanding(survivors: Sequence[Survivor]) -> Survivor | None:
    """Return the only survivor, or the one that agrees in all that a card without a set code can show.

    Beside the latter the others survive only because the number may have been misread.
    """
    if len(survivors) == 1:
        return survivors[0]
    full = [survivor for survivor in survivors if WITHOUT_SET_CODE.issubset(survivor.agreements)]
    others_are_near = all(survivor.features["number"] is None for survivor in survivors if survivor not in full)
    return full[0] if len(full) == 1 and others_are_near else None


def _survivors(subject: Subject, pool: Sequence[Candidate]) -> list[Survivor]:
    """Hold the candidates against the readings, each until something disagrees."""
    readings, set_code = subject.readings, effective_set_code(subject)
    number, language = (None, None) if _is_weak(readings) else (readings.number, readings.language)
    if language not in {candidate.language for candidate in pool}:
        language = None  # The catalog has this name in other languages only.
    is_exact = set_code is not None and any(number in candidate.printed_numbers for candidate in pool)
    artist = readings.any_artist
    comparisons: dict[str, Callable[[Candidate], bool | None]] = {
        "set_code": lambda candidate: None if set_code is None else set_code in candidate.printed_sets,
        "list_mark": lambda candidate: False if mark_contradicts(readings, candidate) else None,
        "copyright_year": lambda candidate: _year_agrees(readings, candidate),
        "language": lambda candidate: _language_agrees(language, candidate),
        "number": lambda candidate: _number_agrees(number, candidate, is_exact=is_exact),
        "artist": lambda candidate: same_artist(artist, candidate.artist) if artist and candidate.artist else None,
    }
    survivors = []
    for candidate in pool:
        features: dict[str, bool | None] = {}
        for name, compare in comparisons.items():
            features[name] = compare(candidate)
            if features[name] is False:
                break
        else:
            survivors.append(Survivor(candidate=candidate, features=features))
    return survivors


def _number_agrees(number: str | None, candidate: Candidate, *, is_exact: bool) -> bool | None:
    """Compare numbers.

    Args:
        is_exact: a set code was read and some printing of the name has just this number. Otherwise the number may be
            misread, and a printing whose own number is one slip away is neither confirmed nor struck out.
    """
    if number is None:
        return None
    if number in candidate.printed_numbers:
        return True
    if not is_exact and any(is_near(number, other) for other in candidate.printed_numbers):
        return None
    return False


def _year_agrees(readings: Readings, candidate: Candidate) -> bool | None:
    """Compare years; a year after the release says nothing, for proxies are often given the current one."""
    if year_contradicts(readings, candidate):
        return False
    return True if year_agrees(readings, candidate) else None


def _language_agrees(language: str | None, candidate: Candidate) -> bool | None:
    """Compare languages; English is what nearly every line says, so it agrees with nothing in particular."""
    if language is None:
        return None
    if language != candidate.language:
        return False
    return None if language == "en" else True


def _by_line(subject: Subject) -> Verdict:
    """Judge a name that the catalog does not know, such as a translated one, by a whole line and its artist."""
    readings = subject.readings
    artist = readings.any_artist
    agreement = {
        owner.id: same_artist(artist, owner.artist) if artist and owner.artist else None
        for owner in subject.line_owners
    }
    possible = [o for o in subject.line_owners if not o.is_apart and agreement[o.id] is not False]
    owners = narrow_same_line(possible, readings)
    if len(owners) != 1:
        reason = SkipReason.SAME_LINE if owners else SkipReason.UNKNOWN_NAME
        return Abstained(reason=reason, survivors=_ids(owners))
    owner = owners[0]
    if _is_weak(readings) or year_contradicts(readings, owner) or not agreement[owner.id]:
        return Abstained(reason=SkipReason.UNKNOWN_NAME, survivors=(owner.id,))
    return Vote(
        printing_id=owner.id,
        confidence=AGREEMENT_CONFIDENCE,
        evidence={
            "basis": "line and artist, name unknown",
            "set_code": readings.set_code,
            "number": readings.number,
            "artist": artist,
        },
    )


def _vote(survivor: Survivor, confidence: float) -> Vote:
    return Vote(
        printing_id=survivor.candidate.id,
        confidence=confidence,
        evidence={"basis": "only survivor", "agreements": ", ".join(sorted(survivor.agreements))},
    )


def _is_weak(readings: Readings) -> bool:
    return is_doubtful(readings, MIN_LINE_CONFIDENCE)


def _ids(candidates: Sequence[Candidate]) -> tuple[int, ...]:
    return tuple(candidate.id for candidate in candidates)
