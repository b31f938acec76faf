"""The cards of a batch with everything the calculators may look at, loaded in a fixed number of queries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from django.db.models import Func, JSONField, QuerySet

from cardpicker.catalogue.name_key import name_keys
from cardpicker.models import ImageEvidence
from cardpicker.stage_d.candidates import (
    Candidate,
    Line,
    candidates_of,
    load_candidates,
    load_known_sets,
    load_line_owners,
)
from cardpicker.stage_d.eligibility import eligible_evidence
from cardpicker.stage_d.readings import Readings, parse_readings
from cardpicker.stage_d.suggestions import Suggestion, Unnamed, suggest


class WithoutRows(Func):
    """Stored readings without the rows that the others were parsed from: most of their bytes, and nothing to judge by."""

    template = "(%(expressions)s - 'bottom_text')"
    output_field = JSONField()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One card under judgement."""

    card_id: int
    readings: Readings
    candidates: tuple[Candidate, ...] = ()  #: Printings with the card's name.
    line_owners: tuple[Candidate, ...] = ()  #: Printings of any name that may bear the line read.
    set_code_known: bool = False
    suggestions: tuple[Suggestion, ...] = ()  #: For people only, where no printing has the card's name.

    @property
    def line(self) -> Line | None:
        """The printed line, when both of its halves were read."""
        if self.readings.set_code is None or self.readings.number is None:
            return None
        return self.readings.set_code, self.readings.number


def load_subjects(card_ids: Collection[int], evidence: QuerySet[ImageEvidence] | None = None) -> list[Subject]:
    """Load the eligible ones of ``card_ids``, in the order of their ids, in a fixed number of queries.

    Args:
        evidence: which evidence may be looked at; None stands for that of cards that may be judged.
    """
    rows = list(
        (eligible_evidence() if evidence is None else evidence)
        # The ORM's own IN spends longer on a list of hundreds than the server does.
        .extra(where=["cardpicker_imageevidence.card_id = ANY(%s)"], params=[list(card_ids)])
        .order_by("card_id")
        .values_list("card_id", "card__name", WithoutRows("readings"))
    )
    read = [(pk, name_keys(name), parse_readings(stored)) for pk, name, stored in rows]
    by_key = load_candidates({key for _, keys, _ in read for key in keys})
    known_sets = load_known_sets({readings.set_code for _, _, readings in read if readings.set_code})
    of_card = {pk: candidates_of(keys, by_key) for pk, keys, _ in read}
    suggested = suggest(
        {pk: Unnamed(name_keys=keys, art_hash=readings.art_hash) for pk, keys, readings in read if not of_card[pk]}
    )
    subjects = [
        Subject(
            card_id=pk,
            readings=readings,
            candidates=of_card[pk],
            set_code_known=readings.set_code in known_sets,
            suggestions=suggested.get(pk, ()),
        )
        for pk, _, readings in read
    ]
    return _with_line_owners(subjects)


def _with_line_owners(subjects: list[Subject]) -> list[Subject]:
    """Look up the lines that no candidate bears; where one does, whose else it might be is never asked."""
    stray = {
        subject.card_id: subject.line
        for subject in subjects
        if subject.line
        and subject.set_code_known
        and not any(subject.line in candidate.lines for candidate in subject.candidates)
    }
    owners = load_line_owners(set(stray.values()))
    return [
        replace(subject, line_owners=owners.get(stray[subject.card_id], ())) if subject.card_id in stray else subject
        for subject in subjects
    ]
