"""Fallback: what join-key left, where several readings that do not depend on each other leave one printing.

Pure. Candidates are struck out only by what was read and disagrees; what was not read, or is not known of a printing,
strikes out nobody. The look of the upload (border, frame) plays no part: proxy makers re-render it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cardpicker.stage_d.candidates import Candidate
from cardpicker.stage_d.join_key import (
    MIN_LINE_CONFIDENCE,
    effective_set_code,
    is_doubtful,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How one candidate stands to the readings: True agrees, False disagrees, None says nothing."""

    candidate: Candidate
    features: Mapping[str, bool | None]

    @property
    def agreements(self) -> tuple[str, ...]:
        """The features that agree."""
        return tuple(name for name, agrees in self.features.items() if agrees)

    @property
    def survives(self) -> bool:
        """Whether nothing disagrees."""
        return False not in self.features.values()


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
    compared = [_compare(subject, candidate) for candidate in subject.candidates if not candidate.is_apart]
    survivors = [comparison for comparison in compared if comparison.survives]
    best_first = sorted(survivors, key=lambda comparison: (-len(comparison.agreements), comparison.candidate.id))
    ids = _ids([comparison.candidate for comparison in best_first])
    if not ids:
        return Abstained(reason=SkipReason.NONE_FITS if compared else SkipReason.UNKNOWN_NAME)
    if len(ids) > 1:
        return Abstained(reason=SkipReason.AMBIGUOUS, survivors=ids)
    only = survivors[0]
    if len(only.agreements) >= MIN_AGREEMENTS:
        return _vote(only, AGREEMENT_CONFIDENCE)
    if len(compared) == 1 and TELLING_ALONE.intersection(only.agreements):
        return _vote(only, ONLY_PRINTING_CONFIDENCE)
    return Abstained(reason=SkipReason.TOO_LITTLE, survivors=ids)


def _compare(subject: Subject, candidate: Candidate) -> Comparison:
    readings = subject.readings
    artist = readings.any_artist
    return Comparison(
        candidate=candidate,
        features={
            "set_code": _set_agrees(subject, candidate),
            "number": _number_agrees(readings, candidate),
            "artist": same_artist(artist, candidate.artist) if artist and candidate.artist else None,
            "copyright_year": _year_agrees(readings, candidate),
            "language": _language_agrees(readings, candidate),
        },
    )


def _set_agrees(subject: Subject, candidate: Candidate) -> bool | None:
    set_code = effective_set_code(subject)
    return None if set_code is None else set_code in candidate.printed_sets


def _number_agrees(readings: Readings, candidate: Candidate) -> bool | None:
    """Compare numbers; one slip of the reader away is no disagreement, and no agreement."""
    if readings.number is None or _is_weak(readings):
        return None
    if readings.number in candidate.printed_numbers:
        return True
    near = any(is_near(readings.number, number) for number in candidate.printed_numbers)
    return None if near else False


def _year_agrees(readings: Readings, candidate: Candidate) -> bool | None:
    """Compare years; a year after the release says nothing, for proxies are often given the current one."""
    if year_contradicts(readings, candidate):
        return False
    return True if year_agrees(readings, candidate) else None


def _language_agrees(readings: Readings, candidate: Candidate) -> bool | None:
    """Compare languages; English is what nearly every line says, so it agrees with nothing in particular."""
    if readings.language is None or _is_weak(readings):
        return None
    if readings.language != candidate.language:
        return False
    return None if readings.language == "en" else True


def _by_line(subject: Subject) -> Verdict:
    """Judge a name that the catalogue does not know, such as a translated one, by a whole line and its artist."""
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


def _vote(comparison: Comparison, confidence: float) -> Vote:
    return Vote(
        printing_id=comparison.candidate.id,
        confidence=confidence,
        evidence={"basis": "only survivor", "agreements": ", ".join(comparison.agreements)},
    )


def _is_weak(readings: Readings) -> bool:
    return is_doubtful(readings, MIN_LINE_CONFIDENCE)


def _ids(candidates: Sequence[Candidate]) -> tuple[int, ...]:
    return tuple(candidate.id for candidate in candidates)
