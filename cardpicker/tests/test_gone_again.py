"""A card that its source lists and whose image was gone is asked for again, a day later; nothing else is."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from cardpicker.models import Card, CardWork, PrintingTagStatus, Source
from cardpicker.models.operations import GONE
from cardpicker.sources.gone_again import REASON
from cardpicker.sources.sync import sync_source
from cardpicker.stage_c.outcomes import Gone
from cardpicker.stage_e import work
from cardpicker.tests.work_support import new_lease

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A folder of four cards, synced, whose images were all gone two days ago."""
    for number in range(4):
        (tmp_path / f"Opt ({number}).png").write_bytes(b"\x89PNG" + bytes([number]))
    made = Source.objects.create(key="folder", name="Folder", kind="local_folder", location=str(tmp_path))
    sync_source(made)
    CardWork.objects.update(
        due_at=None, quarantined_at=timezone.now() - timedelta(days=2), attempts=5, last_outcome=GONE
    )
    return made


def states() -> list[str]:
    """Return where each card's work stands, in the cards' order."""
    return [each.state for each in CardWork.objects.order_by("pk")]


def test_a_card_that_is_listed_still_is_asked_for_again(source: Source) -> None:
    """One try each; what fails again is set aside at once, for another day."""
    sync_source(source)

    assert states() == ["due"] * 4
    assert set(CardWork.objects.values_list("reason", flat=True)) == {REASON}
    lease = new_lease(max_attempts=5)
    first = work.claim(lease, limit=1)
    assert work.settle(lease, first[0], Gone(detail="404"))
    sync_source(source)
    assert states() == ["quarantined", "due", "due", "due"]


def test_only_those_are_that_were_gone_for_a_day_and_are_listed(source: Source, tmp_path: Path) -> None:
    """A fresh failure waits, bytes that are no image stay aside, and a card that is no longer listed is left alone."""
    fresh, broken, unlisted, _ = Card.objects.order_by("pk")
    CardWork.objects.filter(card=fresh).update(quarantined_at=timezone.now())
    CardWork.objects.filter(card=broken).update(last_outcome="unusable: truncated")
    (tmp_path / unlisted.identifier).unlink()

    sync_source(source, dry_run=True)
    assert states() == ["quarantined"] * 4
    assert sync_source(source).held == 1
    assert states() == ["quarantined", "quarantined", "quarantined", "due"]
    sync_source(source, confirm_removals=True)
    assert states() == ["quarantined", "quarantined", "quarantined", "due"]


def test_answers_of_a_card_that_is_gone_stay(source: Source) -> None:
    """A host that is away takes nothing back."""
    Card.objects.update(printing_tag_status=PrintingTagStatus.NO_MATCH)

    sync_source(source)

    assert not Card.objects.exclude(printing_tag_status=PrintingTagStatus.NO_MATCH).exists()


def test_the_word_for_gone_is_that_of_the_work() -> None:
    """Sources know nothing of what settles the work, but for this word."""
    assert work.outcome_name(Gone(detail="")) == GONE
