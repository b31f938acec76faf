"""What Stage C's tests share: folders of obedient images, and hooks that record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cardpicker.models import Card, ImageEvidence, Source
from cardpicker.stage_c.hooks import ComputeParts, FetchOrigin, StageCHooks, StageCReport
from cardpicker.stage_c.outcomes import CardOutcome, FetchOutcome
from cardpicker.stage_c.run import run_stage_c
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests.stage_c_jobs import obey

SETTINGS = StageCSettings(compute_workers=2, fetch_deadline_s=20.0, compute_timeout_s=20.0)


OBEDIENT = ComputeParts(compute=obey)


def add_cards(folder: Path, bodies: Sequence[bytes], *, key: str = "folder", checksums: bool = True) -> list[Card]:
    """Catalog a local folder that holds ``bodies`` as files, in order."""
    folder.mkdir(exist_ok=True)
    source, _ = Source.objects.get_or_create(key=key, defaults={"kind": "local_folder", "location": str(folder)})
    cards = []
    for number, body in enumerate(bodies):
        name = f"{number:03}.png"
        (folder / name).write_bytes(body)
        sha256 = hashlib.sha256(body).hexdigest()
        cards.append(
            Card(
                source=source,
                identifier=name,
                name=f"Card {number}",
                name_key=f"card{number}",
                sha256_checksum=sha256 if checksums else None,
                md5_checksum=hashlib.md5(body).hexdigest() if checksums else None,
                image_version=sha256,
            )
        )
    return Card.objects.bulk_create(cards)


@dataclass
class Recorder:
    """Hooks that record what they are called with; a test replaces what it wants to be otherwise."""

    settled: list[tuple[int, CardOutcome]] = field(default_factory=list)
    fetches: list[FetchOutcome] = field(default_factory=list)
    ticks: int = 0
    on_settle: Callable[[int, CardOutcome], None] = lambda card_id, outcome: None
    may_write: Callable[[], bool] = lambda: True
    should_stop: Callable[[], bool] = lambda: False
    on_fetch: Callable[[FetchOutcome], None] = lambda outcome: None

    def settle(self, card_id: int, outcome: CardOutcome) -> None:
        """Record an outcome, after the test has had its say."""
        self.on_settle(card_id, outcome)
        self.settled.append((card_id, outcome))

    def hooks(self) -> StageCHooks:
        """Return the hooks."""
        return StageCHooks(
            settle=self.settle,
            may_write=self._may_write,
            should_stop=self._should_stop,
            on_tick=self._tick,
            on_fetch=self._fetched,
        )

    def run(
        self, cards: Sequence[Card | int], *, parts: ComputeParts | None = OBEDIENT, **settings: object
    ) -> StageCReport:
        """Run Stage C over ``cards``."""
        return run_stage_c(
            [card if isinstance(card, int) else card.pk for card in cards],
            run_id="test-run",
            settings=replace(SETTINGS, **settings),  # type: ignore[arg-type]
            hooks=self.hooks(),
            parts=parts,
        )

    def names(self) -> dict[int, str]:
        """Return the name of each card's outcome, in the order they were settled."""
        return {card_id: type(outcome).__name__ for card_id, outcome in self.settled}

    def _may_write(self) -> bool:
        return self.may_write()

    def _should_stop(self) -> bool:
        return self.should_stop()

    def _tick(self) -> None:
        self.ticks += 1

    def _fetched(self, outcome: FetchOutcome, origin: FetchOrigin) -> None:
        self.fetches.append(outcome)
        self.on_fetch(outcome)


def stored_ids() -> set[int]:
    """Return the cards that have evidence, current or not."""
    return set(ImageEvidence.objects.values_list("card_id", flat=True))
