"""What several readings of one line agree on: a number is believed when it was read clearly, or twice the same.

Readings that disagree give nothing unless one of them is in the majority: a wrong number is worse than none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cardpicker.stage_c.extractors.collector_parse import LineRead, NumberRead, SetRead

CLEAR = 0.80  #: A single reading at or above it is believed where its surroundings fit.
FAIR = 0.60


@dataclass(frozen=True, slots=True, kw_only=True)
class AgreedLine:
    """The line as believed, and how many readings stand behind the number."""

    number: NumberRead | None
    set: SetRead | None
    confidence: float
    supporters: int
    readings: tuple[str, ...]  #: Every number that was read, as evidence of doubt.


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """What another reading of a line could still change."""

    number: bool
    set: bool


def doubts(lines: Sequence[LineRead]) -> Doubts:
    """Return what of the line is not settled by ``lines``, one per pass in the order they were read."""
    agreed = agree(lines)
    framed = agreed.set is not None and agreed.set.code.known and _is_clear(agreed.set)
    alone = agreed.number is not None and (agreed.supporters >= 2 or agreed.number.legal)  # It needs no set code.
    return Doubts(
        number=agreed.number is None or agreed.confidence < CLEAR or not (framed or alone),
        set=not framed and not (alone and all(line.set is None for line in lines)),
    )


def agree(lines: Sequence[LineRead]) -> AgreedLine:
    """Return what ``lines``, one per pass in the order they were read, agree on."""
    numbers = [line.number for line in lines if line.number is not None]
    set_read = _agree_set([line.set for line in lines if line.set is not None])
    votes = Counter(number.number for number in numbers)
    readings = tuple(number.number for number in numbers)
    if not numbers:
        return AgreedLine(number=None, set=set_read, confidence=0.0, supporters=0, readings=())
    (top, count), *others = sorted(votes.items(), key=lambda item: (-item[1], item[0]))
    best = max((n for n in numbers if n.number == top), key=lambda n: (n.confidence, n.set_size or 0))
    if others and others[0][1] >= count:
        return AgreedLine(number=None, set=set_read, confidence=0.0, supporters=0, readings=readings)
    belief = _belief(best, count, bool(others), set_read)
    sizes = {n.set_size for n in numbers if n.number == top and n.set_size is not None}
    best = best if len(sizes) == 1 else replace(best, set_size=None)
    return AgreedLine(
        number=best if belief >= FAIR else None, set=set_read, confidence=belief, supporters=count, readings=readings
    )


def _belief(number: NumberRead, supporters: int, disputed: bool, set_read: SetRead | None) -> float:
    """Return how far to believe ``number``, 0 to 1."""
    framed = set_read is not None and set_read.code.known
    belief = number.confidence - 0.1 * number.exchanged
    if supporters >= 2:
        belief = 1 - (1 - max(belief, 0.5)) * 0.35
    if number.set_size is None and not framed:
        belief -= 0.3
    if number.set_size is not None and _value(number) > number.set_size:
        belief -= 0.15
    if number.layout in ("bare-padded", "plain"):
        belief -= 0.1
    if supporters < 2 and not framed and not number.legal:
        belief -= 0.1
    return round(max(0.0, min(0.99, belief - (0.2 if disputed else 0.0))), 3)


def _value(number: NumberRead) -> int:
    return int("".join(c for c in number.number if c.isdigit()) or 0)


def _is_clear(read: SetRead) -> bool:
    # The engine believes little in words of no language, however well it reads them: a code of the catalog beside a
    # language is proof enough.
    if read.code.distance == 0:
        return read.language is not None or read.confidence >= FAIR / 2
    return read.confidence >= FAIR


def _agree_set(reads: Sequence[SetRead]) -> SetRead | None:
    """Return the set code most readings saw; a tie of known codes is none, nor is one unclear look-alike a code."""
    known = [read for read in reads if read.code.known]
    seen = Counter(read.code.code for read in known)
    known = [read for read in known if read.code.distance == 0 or _is_clear(read) or seen[read.code.code] > 1]
    if not known:
        reads = [read for read in reads if not read.code.known and read.confidence >= FAIR / 2]
        return reads[0] if len({read.code.code for read in reads}) == 1 else None
    votes = Counter(read.code.code for read in known)
    exact = {read.code.code for read in known if read.code.distance == 0}
    (top, count), *others = sorted(votes.items(), key=lambda item: (-item[1], item[0] not in exact, item[0]))
    if others and others[0][1] == count and (others[0][0] in exact) == (top in exact):
        return None
    return max((r for r in known if r.code.code == top), key=lambda r: (-r.code.distance, r.confidence))
