"""Sends the stream through real dispatches on a scratch product, a wave at a time, and watches the compute processes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from cardpicker.catalogue.name_key import name_key
from cardpicker.models import Card, Source
from cardpicker.stage_e.dispatch import default_options, dispatch_micro_batch
from cardpicker.stage_e.outcomes import DispatchStatus
from scripts.ops.drill.image_server import ImageServer
from scripts.ops.drill.processes import pool_children_of
from scripts.ops.hostile.judge import Verdict, judge
from scripts.ops.hostile.stream import Sent

WAVE = 250  #: Cards whose files lie on the disk at once.
WATCH_S = 0.1


@dataclass(slots=True, kw_only=True)
class Processes:
    """The compute processes that were seen, and the most memory that one of them had."""

    pids: set[int] = field(default_factory=set)
    peak_mb: float = 0.0

    def look(self) -> None:
        """Note who is there."""
        for process in pool_children_of(psutil.Process().pid):
            with contextlib.suppress(psutil.Error):
                self.pids.add(process.pid)
                self.peak_mb = max(self.peak_mb, process.memory_info().rss / 2**20)


class Sender:
    """A catalog of two sources, a folder and a server of the same files, each with every second card."""

    def __init__(self, folder: Path, web: ImageServer) -> None:
        self._folder = folder
        self._web = web
        self._local, self._remote = (
            Source.objects.create(key=f"hostile-{kind}", name=kind, kind=kind, location=location)
            for kind, location in (("local_folder", str(folder)), ("http_manifest", f"{web.url}/list.csv"))
        )
        self._serial = 0

    def send(self, cards: Sequence[Sent]) -> dict[int, Sent]:
        """Write the files and save the cards, in one statement as a sync does; return them by their keys."""
        made = [self._card(each) for each in cards]
        return {card.pk: each for card, each in zip(Card.objects.bulk_create(made), cards, strict=True)}

    def _card(self, sent: Sent) -> Card:
        self._serial += 1
        # Whatever the bytes are, the name says JPEG.
        file = f"{self._serial:06}.jpg"
        (self._folder / file).write_bytes(sent.body)
        digest = hashlib.sha256(sent.body).hexdigest()
        is_remote = self._serial % 2 == 0
        return Card(
            source=self._remote if is_remote else self._local,
            identifier=f"{self._web.url}/{file}" if is_remote else file,
            name=sent.name,
            name_key=name_key(sent.name),
            size=len(sent.body),
            extension="jpg",
            sha256_checksum=digest,
            image_version=digest,
        )


class Drill:
    """One product at work, for as long as its ``with`` block lasts."""

    def __init__(self) -> None:
        self.processes = Processes()
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._keep_looking, daemon=True, name="watch")
        self._folder = Path(tempfile.mkdtemp(prefix="cardpicker-hostile-"))
        self._images = self._folder / "images"
        self._images.mkdir()
        self._web = ImageServer(self._images, self._folder / "mode")
        self._sender = Sender(self._images, self._web)

    def __enter__(self) -> Drill:
        self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._watch.join()
        standing = default_options().standing
        if standing is not None:
            standing.close()
        self._web.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def send(self, cards: Iterator[Sent], say: Callable[[str], None] = lambda _: None) -> Verdict:
        """Dispatch every card of the stream, a wave at a time, and judge each."""
        verdict = Verdict()
        count = 0
        while wave := list(itertools.islice(cards, WAVE)):
            sent = self._sender.send(wave)
            _dispatch_all(verdict)
            judge(sent, verdict)
            for file in self._images.iterdir():
                file.unlink()
            count += len(wave)
            say(f"{count:,} cards, {len(verdict.violations)} violations")
        return verdict

    def _keep_looking(self) -> None:
        while not self._over.wait(WATCH_S):
            self.processes.look()


def _dispatch_all(verdict: Verdict) -> None:
    """Dispatch until nothing is due; whatever else than a completed batch ends it is a violation."""
    while True:
        outcome = dispatch_micro_batch(trigger_reason="hostile drill")
        if outcome.status is DispatchStatus.EMPTY:
            return
        if outcome.status is not DispatchStatus.COMPLETED:
            verdict.violations.append(f"a dispatch ended as {outcome.status}: {outcome.detail}")
            return
