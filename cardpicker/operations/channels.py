"""The channel report: what each extractor and calculator has to say, and why it says nothing where it says nothing.

"Ran and found nothing" and "never ran" are different things: the first is *abstained*, the second is *silent*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.db.models import F, QuerySet, TextField, Value
from django.db.models.functions import MD5, Cast, Concat

from cardpicker.models import Card
from cardpicker.stage_c.extractors.registry import extractor_versions
from cardpicker.stage_c.hooks import carries_something
from cardpicker.stage_d.eligibility import Ineligible, ineligibility
from cardpicker.stage_d.registry import CALCULATORS, stage_d_manifest
from cardpicker.stage_d.run import judge
from cardpicker.stage_d.subjects import load_subjects
from cardpicker.stage_d.verdicts import Abstained, SkipReason, Verdict, Vote

CHUNK = 500


class Silence(StrEnum):
    """Why a channel has not run on a card, beside the card's not being eligible."""

    NEVER_RAN = "never-ran"
    NOT_JUDGED_YET = "not-judged-by-todays-rules"
    FAILED = "failed"


NOTHING_READ = "nothing-read"


@dataclass(slots=True)
class Channel:
    """One extractor or calculator over the cards that were looked at."""

    name: str
    positive: int = 0  #: Something read; a printing voted for.
    negative: int = 0  #: "No such printing" voted for.
    asked: Counter[str] = field(default_factory=Counter)  #: Questions to people, by reason.
    abstained: Counter[str] = field(default_factory=Counter)  #: Ran and found nothing, by reason.
    silent: Counter[str] = field(default_factory=Counter)  #: Did not run, by reason.

    @property
    def has_run(self) -> bool:
        """Whether it ran on any card."""
        return bool(self.positive or self.negative or self.asked or self.abstained)

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "positive": self.positive,
            "negative": self.negative,
            "asked": dict(sorted(self.asked.items())),
            "abstained": dict(sorted(self.abstained.items())),
            "silent": dict(sorted(self.silent.items())),
            "has_run": self.has_run,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelReport:
    """Every channel over the same cards, in the order in which they run."""

    cards: int
    drawn_from: int
    extractors: Sequence[Channel]
    calculators: Sequence[Channel]

    @property
    def never_ran(self) -> list[str]:
        """Channels that ran on no card at all."""
        return [channel.name for channel in (*self.extractors, *self.calculators) if not channel.has_run]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "cards": self.cards,
            "drawn_from": self.drawn_from,
            "extractors": {channel.name: channel.as_json() for channel in self.extractors},
            "calculators": {channel.name: channel.as_json() for channel in self.calculators},
            "never_ran": self.never_ran,
        }


@dataclass(frozen=True, slots=True)
class _Row:
    card_id: int
    ineligible: str
    image_version: str
    evidence_version: str | None
    readings: Mapping[str, Any] | None
    versions: Mapping[str, int] | None
    judged_by: str | None


def read_channels(cards: QuerySet[Card], sample: int | None = None) -> ChannelReport:
    """Look at the cards, or at ``sample`` of them, always the same ones.

    The extractors' part is what is stored; the calculators' is what their rules say of it now, of judged cards only.
    """
    total = cards.count()
    if sample is not None and sample < total:
        draw = MD5(Concat(Value("channels"), Cast("pk", TextField())))
        cards = Card.objects.filter(pk__in=cards.order_by(draw).values("pk")[:sample])
    extractors = {name: Channel(name) for name in extractor_versions()}
    calculators = {calculator.name: Channel(calculator.name) for calculator in CALCULATORS}
    looked_at = 0
    for rows in _chunks(cards):
        looked_at += len(rows)
        for row in rows:
            _note_readings(extractors.values(), row)
        _note_verdicts(calculators, rows)
    return ChannelReport(
        cards=looked_at,
        drawn_from=total,
        extractors=list(extractors.values()),
        calculators=list(calculators.values()),
    )


def _chunks(cards: QuerySet[Card]) -> Iterator[list[_Row]]:
    last = 0
    columns = ("evidence__image_version", "evidence__readings", "evidence__extractor_versions", "evidence__judged_by")
    rows = cards.annotate(ineligible=ineligibility(), version=F("image_version")).order_by("pk")
    while chunk := list(rows.filter(pk__gt=last).values_list("pk", "ineligible", "version", *columns)[:CHUNK]):
        yield [_Row(*row) for row in chunk]
        last = chunk[-1][0]


def _note_readings(channels: Any, row: _Row) -> None:
    for channel in channels:
        if row.readings is None:
            channel.silent[Ineligible.NO_EVIDENCE] += 1
        elif row.evidence_version != row.image_version:
            channel.silent[Ineligible.OTHER_IMAGE] += 1
        elif channel.name not in row.readings:
            channel.silent[Silence.NEVER_RAN] += 1
        elif "error" in (reading := row.readings[channel.name] or {}):
            channel.silent[f"{Silence.FAILED}: {str(reading['error']).partition(':')[0]}"] += 1
        elif carries_something(reading):
            channel.positive += 1
        else:
            channel.abstained[NOTHING_READ] += 1


def _note_verdicts(channels: Mapping[str, Channel], rows: Sequence[_Row]) -> None:
    why = {row.card_id: row.ineligible or _why_not_judged(row) for row in rows}
    for channel in channels.values():
        channel.silent.update(reason for reason in why.values() if reason)
    for subject in load_subjects([card_id for card_id, reason in why.items() if not reason]):
        for name, verdict in judge(subject).items():
            _note_verdict(channels[name], verdict)


def _why_not_judged(row: _Row) -> str:
    return "" if row.judged_by == stage_d_manifest() else Silence.NOT_JUDGED_YET


def _note_verdict(channel: Channel, verdict: Verdict) -> None:
    match verdict:
        case Vote(printing_id=None):
            channel.negative += 1
        case Vote():
            channel.positive += 1
        case Abstained(reason=SkipReason.SETTLED_EARLIER):
            channel.silent[SkipReason.SETTLED_EARLIER] += 1
        case Abstained():
            channel.abstained[verdict.reason] += 1
        case _:
            channel.asked[verdict.reason] += 1
