"""What a run of Stage C is given by its caller, and what it reports back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cardpicker.stage_c.canaries import take_back
from cardpicker.stage_c.conveyor import StandingPool
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, Lexicon, Reading
from cardpicker.stage_c.outcomes import CardOutcome, FetchOutcome, LockedOut, Unusable
from cardpicker.stage_c.persist import Settle, persist_evidence
from cardpicker.stage_c.transfer import transfer_evidence

#: Keys that say how a reading was made or how it looked raw, not what was read.
_BOOKKEEPING = frozenset(
    {"raw", "rows", "passes", "confidence", "engine", "variant", "kind", "ratio", "detail", "ocr_calls", "error"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """How evidence gets into the database; a rehearsal has another."""

    persist: Callable[..., CardOutcome] = persist_evidence
    transfer: Callable[..., CardOutcome | None] = transfer_evidence
    take_back: Callable[[int, str], object] = take_back


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOrigin:
    """What was fetched from where, as far as a count of failures asks."""

    source_id: int
    is_remote: bool  #: Whether it went over a network.
    was_gone: bool  #: Whether the card's image was gone at its last attempt: that it still is, is no news.


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCHooks:
    """The caller's say in a run; all of it is called in the thread that runs it."""

    settle: (
        Settle  #: Once a card, inside the evidence's transaction where there is one; not once ``may_write`` said no.
    )
    may_write: Callable[[], bool]  #: Asked before each write; a no ends the run with nothing more written.
    should_stop: Callable[[], bool]  #: Asked between images; what is in flight is still finished and stored.
    on_tick: Callable[[], None]  #: At least once a second.
    on_fetch: Callable[
        [FetchOutcome, FetchOrigin], None
    ]  #: Each fetch as it is judged, a ``Fetched`` without its bytes.
    store: Store = Store()  #: How evidence gets into the database.
    rereads: bool = False  #: Whether images are read again whose evidence is current.
    standing: StandingPool | None = None  #: Compute processes to use and to leave; None: the run makes its own.


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCReport:
    """What became of a batch's cards."""

    counts: Mapping[str, int]  #: By class name of the outcome.
    evidence_card_ids: tuple[int, ...]  #: Cards whose evidence is current now.
    locked_out: LockedOut | None
    extractor_yield: Mapping[str, int]  #: Readings that carried something, by extractor.
    fetched: int  #: Images whose bytes arrived.


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeParts:
    """What the compute processes run: importable functions, since they are sent by name."""

    compute: Callable[[bytes, ComputeContext], CardEvidence | Unusable]
    initializer: Callable[..., None] | None = None
    initargs: tuple[object, ...] = ()
    preload: tuple[str, ...] = ()  #: Modules that are imported once for all processes.


def extraction_parts(engine_name: str, set_codes: frozenset[str]) -> ComputeParts:
    """Return the real extraction, with the OCR engine of that name."""
    from cardpicker.stage_c import compute  # numpy and the OCR library stay out of whoever only asks what is current

    return ComputeParts(
        compute=compute.compute_card_evidence,
        initializer=compute.warm_up,
        initargs=(Lexicon(set_codes=set_codes), engine_name),
        preload=("cardpicker.stage_c.compute",),
    )


def carries_something(reading: Reading) -> bool:
    """Whether an extractor read anything: a value that is neither null nor empty beside its bookkeeping."""
    if reading.get("error"):
        return False
    told = {key: value for key, value in reading.items() if key not in _BOOKKEEPING}
    return any(value not in (None, "", False, [], {}) for value in (told or reading).values())
