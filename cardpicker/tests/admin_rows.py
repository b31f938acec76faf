"""Rows of every table that the admin shows, plain and odd."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone
from PIL import Image

from cardpicker.models import (
    ArtOutcome,
    BulkRun,
    CanonicalArt,
    CanonicalArtist,
    CanonicalCard,
    CanonicalExpansion,
    Card,
    CardPrintingTag,
    CardWork,
    CatalogPass,
    CatalogVersion,
    EnvelopeBar,
    EnvelopeTrip,
    FetchBudget,
    FetchOutcome,
    ImageEvidence,
    PilotRunLedger,
    ReviewItem,
    ReviewReason,
    RunStatus,
    Source,
    StageEThrottleCounter,
    VoteSource,
)

SCRIPT = "<script>alert('read')</script>"
RUN = "event-run-1"


def make_staff(name: str, *permissions: str) -> User:
    """Create a person of the staff with these permissions of this app, by codename."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="cardpicker", codename__in=permissions))
    return user


def superuser_client() -> Client:
    """Return a browser in which a superuser is logged in; no password, because hashing one takes longer than a test."""
    client = Client()
    client.force_login(User.objects.create_user("admin", is_staff=True, is_superuser=True))
    return client


def make_source(folder: Path | str = "/nowhere", key: str = "folder") -> Source:
    """Create a source over a local folder."""
    return Source.objects.create(key=key, name=f"Source {key}", kind="local_folder", location=str(folder))


def make_printing(number: int = 1) -> CanonicalCard:
    """Create a printing with a set of its own and an artist of its own."""
    return CanonicalCard.objects.create(
        identifier=uuid.uuid4(),
        name=f"Opt {number}",
        name_key=f"opt{number}",
        name_keys=[f"opt{number}"],
        artist=CanonicalArtist.objects.create(name=f"Artist {number}"),
        expansion=CanonicalExpansion.objects.create(code=f"s{number}", name=f"Set {number}"),
        collector_number=str(number),
        language="en",
    )


def make_card(source: Source, name: str = "Opt", identifier: str = "") -> Card:
    """Create a card; the database makes its work."""
    return Card.objects.create(
        source=source, name=name, identifier=identifier or f"{uuid.uuid4()}.jpg", image_version=uuid.uuid4().hex
    )


def make_run(run_id: str = RUN, *, running: bool = False) -> PilotRunLedger:
    """Create a batch of a run."""
    return PilotRunLedger.objects.create(
        run_id=run_id,
        trigger_reason="backstop-sweep",
        status=RunStatus.RUNNING if running else RunStatus.FAILED,
        reason="" if running else "the dispatch was stopped",
        finished_at=None if running else timezone.now(),
        host="host-1",
        pid=7,
        process_started_at=timezone.now(),
        batch_size=25,
        stage_c_stored=20,
        stage_c_unusable=3,
        yields={"artist": 9},
        peak_rss_mb=212.4,
    )


def make_evidence(card: Card, **fields: object) -> ImageEvidence:
    """Create evidence with a reading that is a script."""
    given = {
        "image_version": card.image_version,
        "image_sha256": "ab" * 32,
        "manifest": "m",
        "extractor_versions": {"collector_line": 3},
        "readings": {"collector_line": {"raw": SCRIPT, "number": "23"}, "geometry": {"bleed_mm": 3.175}},
        "elapsed_ms": 512,
        "run_id": RUN,
        **fields,
    }
    return ImageEvidence.objects.create(card=card, **given)


def make_trip(bar: str = EnvelopeBar.HOST_LOAD, *, host: str = "", acknowledged: bool = False) -> EnvelopeTrip:
    """Create a trip."""
    closed = {"acknowledged_at": timezone.now(), "acknowledged_by": "ann", "note": "seen"} if acknowledged else {}
    return EnvelopeTrip.objects.create(bar=bar, host=host, value=8.2, ceiling=7, detail="too much", **closed)


def make_everything(count: int) -> None:
    """Fill every table with ``count`` rows, each with rows of the other tables behind it."""
    offset = CanonicalCard.objects.count()
    sources = [make_source(key=f"s{offset + each}") for each in range(count)]
    for index, source in enumerate(sources, start=offset):
        printing, card = make_printing(index), make_card(source)
        run = make_run(f"{RUN}-{index}", running=index % 2 == 0)
        make_evidence(card, run_id=run.run_id)
        voter = User.objects.create_user(f"voter-{index}")
        CardPrintingTag.objects.create(
            card=card, printing=printing, anonymous_id="join-key", source=VoteSource.OCR, confidence=0.85
        )
        CardPrintingTag.objects.create(
            card=card, is_no_match=True, anonymous_id="person", user=voter, source=VoteSource.USER
        )
        ReviewItem.objects.create(card=card, reason=ReviewReason.AMBIGUOUS, survivors=[printing.pk, 999_999])
        make_trip(host=f"host-{index}", acknowledged=True)
        FetchOutcome.objects.create(outcome="FAILED", host="host-1")
        CatalogPass.objects.create(name=f"pass-{index}", source=source, sample=1000)
        FetchBudget.objects.create(destination=f"place-{index}")
        CanonicalArt.objects.create(key=uuid.uuid4(), kind="k", outcome=ArtOutcome.HASHED, art_hash=7 + index)
        BulkRun.objects.create(run_id=f"bulk-{index}", command="purge_machine_votes", scope="all", writes=True)
        CardPrintingTag.objects.create(
            card=card, printing=printing, anonymous_id="gone", source=VoteSource.OCR
        ).delete()
        Card.objects.filter(pk=card.pk).update(printing_tag_status="RESOLVED", inferred_canonical_card=printing)
        CardWork.objects.filter(pk=card.pk).update(
            due_at=None, lease_owner=run.batch_id, leased_until=timezone.now() + timedelta(minutes=1)
        )
    StageEThrottleCounter.increment()
    CatalogVersion.objects.get_or_create(pk=1)


def quarantine(card: Card, outcome: str = "unusable: truncated") -> None:
    """Put a card aside."""
    CardWork.objects.filter(pk=card.pk).update(
        due_at=None,
        quarantined_at=timezone.now(),
        attempts=5,
        last_outcome=outcome,
        last_detail=f"{outcome}, at byte 9",
    )


def write_image(path: Path, size: tuple[int, int] = (630, 880)) -> None:
    """Write a picture."""
    Image.new("RGB", size, (20, 90, 160)).save(path)
