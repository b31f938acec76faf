"""Join-key: the printed line against the printings of the card's name.

Pure: a subject in, a verdict out. Set code and number together find a printing, a number alone only where it fits one.
Whatever else was read may withhold the vote or lower its confidence, and never makes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cardpicker.stage_d.candidates import LIST_SETS, Candidate
from cardpicker.stage_d.matching import fold_confusable, is_near, same_artist
from cardpicker.stage_d.readings import Readings
from cardpicker.stage_d.subjects import Subject
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Verdict, Vote

SET_AND_NUMBER_CONFIDENCE: Final = 0.85
NUMBER_CONFIDENCE: Final = 0.75
DISAGREEMENT_CONFIDENCE: Final = 0.65
NO_MATCH_CONFIDENCE: Final = 0.60

#: The lowest confidence at which lines were seen to be read right, rounded down.
MIN_LINE_CONFIDENCE: Final = 0.6
#: A number without a set code must be this sure, or be supported by artist or year and have no number near it.
MIN_LONE_NUMBER_CONFIDENCE: Final = 0.9
#: "No such printing" is claimed only from a line as sure as this.
MIN_NO_MATCH_LINE_CONFIDENCE: Final = 0.8
#: A card may bear the copyright year of the time it was made ready for print, but hardly an older one.
MAX_YEARS_BEFORE_RELEASE: Final = 2


def judge_join_key(subject: Subject, earlier: Sequence[Verdict] = ()) -> Verdict:
    """Return the printing that the printed line names, "no such printing", or why neither."""
    readings, candidates = subject.readings, subject.candidates
    if not candidates:
        return Abstained(reason=SkipReason.UNKNOWN_NAME)
    if readings.number is None:
        return Abstained(reason=SkipReason.NO_TEXT)
    if is_doubtful(readings, MIN_LINE_CONFIDENCE):
        return Abstained(reason=SkipReason.LOW_CONFIDENCE)
    set_code = effective_set_code(subject)
    if set_code is None:
        return _by_number(readings, readings.number, candidates)
    of_set = [candidate for candidate in candidates if set_code in candidate.printed_sets]
    if not of_set:
        return _stray_line(subject)
    matches = [candidate for candidate in of_set if (set_code, readings.number) in candidate.lines]
    if not matches:
        return Abstained(reason=SkipReason.NUMBER_FITS_NONE, survivors=_ids(of_set))
    matches = narrow_same_line(matches, readings)
    if len(left := _unstamped(matches)) > 1:
        return Abstained(reason=SkipReason.SAME_LINE, survivors=_ids(matches))
    matches = left
    if _artist_agrees(readings.artist, matches[0]) is False and _near_rivals(
        matches[0], readings, readings.number, of_set
    ):
        return Abstained(reason=SkipReason.ARTIST_CONTRADICTS, survivors=_ids(of_set))
    return _checked(matches[0], readings, SET_AND_NUMBER_CONFIDENCE, "set+number")


def effective_set_code(subject: Subject) -> str | None:
    """Return the set code to go by: as read if it is real, else the one candidate's code that OCR could turn into it.

    A code that is neither is noise, such as "proxy" or "mtg", and counts as unread.
    """
    read = subject.readings.set_code
    if read is None or subject.set_code_known:
        return read
    codes = {code for candidate in subject.candidates for code in candidate.printed_sets}
    if read in codes:
        return read
    meant = {code for code in codes if fold_confusable(code) == fold_confusable(read)}
    return meant.pop() if len(meant) == 1 else None


def narrow_same_line(matches: Sequence[Candidate], readings: Readings) -> list[Candidate]:
    """Return those of several printings with one line that mark, language and artist leave, or all when they tell nothing."""
    left = [candidate for candidate in matches if not mark_contradicts(readings, candidate)] or list(matches)
    if readings.language in {candidate.language for candidate in left}:
        left = [candidate for candidate in left if candidate.language == readings.language]
    if readings.any_artist is not None and len(left) > 1:
        agreement = {c.id: same_artist(readings.any_artist, c.artist) if c.artist else None for c in left}
        agreeing = [candidate for candidate in left if agreement[candidate.id]]
        # An artist that the catalog does not know excludes nobody.
        if agreeing and all(agreement[candidate.id] is not None for candidate in left):
            left = agreeing
    return left


def _unstamped(matches: Sequence[Candidate]) -> list[Candidate]:
    """Return those without a prerelease's date stamp, or all where each has one: a stamp lies large across the art."""
    return [match for match in matches if not match.is_stamped] or list(matches)


def mark_contradicts(readings: Readings, candidate: Candidate) -> bool:
    """Tell whether the mark of The List was seen on what is no reprint of it, or surely not on what is one."""
    return readings.list_mark is not None and readings.list_mark != (candidate.set_code in LIST_SETS)


def is_doubtful(readings: Readings, wanted: float) -> bool:
    """Tell whether the reader itself is less sure of the line than ``wanted``; one that states nothing is trusted."""
    return readings.line_confidence is not None and readings.line_confidence < wanted


def year_contradicts(readings: Readings, candidate: Candidate) -> bool:
    """Tell whether the copyright line is older than the printing could bear."""
    if readings.copyright_year is None or candidate.dated is None:
        return False
    return readings.copyright_year < candidate.dated.year - MAX_YEARS_BEFORE_RELEASE


def year_agrees(readings: Readings, candidate: Candidate) -> bool:
    """Tell whether the copyright line bears the year of the release or the one before it."""
    if readings.copyright_year is None or candidate.dated is None:
        return False
    return readings.copyright_year in (candidate.dated.year, candidate.dated.year - 1)


def _by_number(readings: Readings, number: str, candidates: Sequence[Candidate]) -> Verdict:
    """Judge a number without a set code: a misread one soon fits another printing."""
    pool = [candidate for candidate in candidates if not candidate.is_apart]
    matches = [candidate for candidate in pool if number in candidate.printed_numbers]
    if len(matches) > 1:
        matches = [match for match in matches if not mark_contradicts(readings, match)] or matches
    if len(left := _unstamped(matches)) == 1:
        matches = left
    if len(matches) > 1:
        return Abstained(reason=SkipReason.AMBIGUOUS, survivors=_ids(matches))
    if not matches:
        noise = readings.set_code is not None
        return Abstained(reason=SkipReason.UNKNOWN_SET_CODE if noise else SkipReason.NUMBER_FITS_NONE)
    match = matches[0]
    if readings.copyright_year is not None and match.dated is not None and not year_agrees(readings, match):
        return Abstained(reason=SkipReason.YEAR_CONTRADICTS, survivors=(match.id,))
    if is_doubtful(readings, MIN_LONE_NUMBER_CONFIDENCE):
        if rivals := _near_rivals(match, readings, number, pool):
            return Abstained(reason=SkipReason.AMBIGUOUS, survivors=_ids([match, *rivals]))
        if not (year_agrees(readings, match) or _artist_agrees(readings.any_artist, match)):
            return Abstained(reason=SkipReason.LOW_CONFIDENCE, survivors=(match.id,))
    return _checked(match, readings, NUMBER_CONFIDENCE, "number")


def _near_rivals(match: Candidate, readings: Readings, number: str, pool: Sequence[Candidate]) -> list[Candidate]:
    """Return the other printings whose number is one slip away and that neither artist nor year strikes out."""
    return [
        rival
        for rival in pool
        if rival is not match
        and any(is_near(number, other) for other in rival.printed_numbers)
        and not (readings.copyright_year is not None and rival.dated is not None and not year_agrees(readings, rival))
        and _artist_agrees(readings.any_artist, rival) is not False
    ]


def _artist_agrees(read: str | None, candidate: Candidate) -> bool | None:
    return same_artist(read, candidate.artist) if read and candidate.artist else None


def _stray_line(subject: Subject) -> Verdict:
    """Judge a real set code in which the card's name does not exist.

    A slip of the reader or a misnamed file explains that better than an invented printing. So "no such printing" takes
    a sure line that belongs to another card, an artist who is this card's and not that card's, and no candidate near.
    """
    readings, owners = subject.readings, subject.line_owners
    artist = readings.any_artist
    survivors = _ids(owners)
    if not owners or artist is None or (readings.line_confidence or 0.0) < MIN_NO_MATCH_LINE_CONFIDENCE:
        return Abstained(reason=SkipReason.LINE_OF_ANOTHER_CARD, survivors=survivors)
    is_ours = any(candidate.artist and same_artist(artist, candidate.artist) for candidate in subject.candidates)
    is_theirs = any(owner.artist is None or same_artist(artist, owner.artist) is not False for owner in owners)
    if not is_ours or is_theirs or _has_near_line(subject):
        return Abstained(reason=SkipReason.LINE_OF_ANOTHER_CARD, survivors=survivors)
    return Vote(
        printing_id=None,
        confidence=NO_MATCH_CONFIDENCE,
        evidence={"basis": "line of another card", "set_code": readings.set_code, "number": readings.number},
    )


def _has_near_line(subject: Subject) -> bool:
    set_code, number = subject.readings.set_code or "", subject.readings.number or ""
    lines = {line for candidate in subject.candidates for line in candidate.lines}
    return any(is_near(set_code, code) or is_near(number, other) for code, other in lines)


def _checked(candidate: Candidate, readings: Readings, confidence: float, basis: str) -> Verdict:
    survivors = (candidate.id,)
    if readings.truncated:
        return Abstained(reason=SkipReason.TRUNCATED, survivors=survivors)
    if mark_contradicts(readings, candidate):
        return Abstained(reason=SkipReason.SAME_LINE, survivors=survivors)  # The catalog lacks the other printing.
    if year_contradicts(readings, candidate):
        return Abstained(reason=SkipReason.YEAR_CONTRADICTS, survivors=survivors)
    row_agrees = _artist_agrees(readings.row_artist, candidate)
    artist_agrees = _artist_agrees(readings.artist, candidate)
    # A number alone is too thin to stand against a name.
    if row_agrees is False or (artist_agrees is False and basis == "number" and not row_agrees):
        return Abstained(reason=SkipReason.ARTIST_CONTRADICTS, survivors=survivors)
    border_differs = bool(
        readings.border_color and candidate.border_color and readings.border_color != candidate.border_color
    )
    if border_differs or artist_agrees is False:
        confidence = DISAGREEMENT_CONFIDENCE
    return Vote(
        printing_id=candidate.id,
        confidence=confidence,
        evidence={
            "basis": basis,
            "set_code": readings.set_code,
            "number": readings.number,
            "language": readings.language,
            "copyright_year": readings.copyright_year,
            "artist": _word(row_agrees if row_agrees is not None else artist_agrees),
            "border": "differs" if border_differs else "fits",
        },
    )


def _word(agrees: bool | None) -> str:
    return {True: "agrees", False: "differs", None: "unread"}[agrees]


def _ids(candidates: Sequence[Candidate]) -> tuple[int, ...]:
    return tuple(candidate.id for candidate in candidates)
