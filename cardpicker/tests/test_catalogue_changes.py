"""Printings that come or change make the cards of their names due for judgement, in the import's own transaction."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from cardpicker.catalogue.scryfall import import_bulk
from cardpicker.models import Card, CardWork, PrintingTagStatus
from cardpicker.stage_e import catalogue_changes
from cardpicker.stage_e.catalogue_changes import mark_names_due
from cardpicker.tests.stage_d_cases import make_card

pytestmark = pytest.mark.django_db


def printing(number: int, name: str, **fields: Any) -> dict[str, Any]:
    """Return a bulk object."""
    return {
        "object": "card",
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "name": name,
        "lang": "en",
        "set": "tst",
        "set_name": "Test Set",
        "collector_number": str(number),
        "artist": "Ann Artist",
        "released_at": "2020-02-02",
        **fields,
    }


def imported(path: Path, *printings: dict[str, Any]) -> str:
    """Import a file of these printings by the command, and return what it printed."""
    path.write_text("\n".join(map(json.dumps, printings)), encoding="utf-8")
    out = StringIO()
    call_command("import_canonical_card_data", "--from", str(path), stdout=out, stderr=StringIO())
    return out.getvalue()


def due_names() -> set[str]:
    """Return the names of cards that are due because the catalog changed, and forget that they are."""
    due = CardWork.objects.filter(due_at__isnull=False, reason=catalogue_changes.REASON)
    names = set(due.values_list("card__name", flat=True))
    CardWork.objects.update(due_at=None, reason="")
    return names


@pytest.fixture
def cards() -> None:
    """Cards of several names, none due."""
    for name in ("Opt", "Opt (2)", "Shock", "Insectile Aberration", "Fire // Ice"):
        make_card(name)
    CardWork.objects.update(due_at=None)


@pytest.mark.usefixtures("cards")
def test_new_and_changed_printings_make_the_cards_of_their_names_due(tmp_path: Path) -> None:
    """Also by a face, also under a name that a printing no longer has; what is the same again makes none due."""
    path = tmp_path / "printings.jsonl"
    opt, delver = printing(1, "Opt"), printing(2, "Delver of Secrets // Insectile Aberration")

    assert "3 cards are due for judgement" in imported(path, opt, delver)
    assert due_names() == {"Opt", "Opt (2)", "Insectile Aberration"}
    assert "due" not in imported(path, opt, delver)
    assert due_names() == set()

    imported(path, printing(1, "Opt", artist="Bob Brush"), delver)
    assert due_names() == {"Opt", "Opt (2)"}
    imported(path, printing(1, "Shock"), delver)
    assert due_names() == {"Opt", "Opt (2)", "Shock"}
    imported(path, printing(1, "Shock"), delver, printing(3, "Ice"))
    assert due_names() == {"Fire // Ice"}


@pytest.mark.usefixtures("cards")
def test_what_no_card_is_judged_by_makes_none_due(tmp_path: Path) -> None:
    """Addresses of pictures change every day."""
    path = tmp_path / "printings.jsonl"
    imported(path, printing(1, "Opt"))
    due_names()

    imported(path, printing(1, "Opt", rarity="rare", image_uris={"large": "https://example.org/1.jpg?2"}))
    assert due_names() == set()


def test_only_open_and_listed_cards_are_marked_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, in statements of a bounded size."""
    monkeypatch.setattr(catalogue_changes, "STEP", 3)
    cards = [make_card("Opt") for _ in range(8)]
    CardWork.objects.update(due_at=None)
    Card.objects.filter(pk=cards[0].pk).update(printing_tag_status=PrintingTagStatus.NO_MATCH)
    Card.objects.filter(pk=cards[1].pk).update(removed_at=timezone.now())

    assert mark_names_due(["opt", "nonesuch"]) == 6
    assert mark_names_due(["opt"]) == 0


@pytest.mark.usefixtures("cards")
def test_an_import_that_fails_makes_nothing_due(tmp_path: Path) -> None:
    """The marks are the import's own."""
    path = tmp_path / "printings.jsonl"
    path.write_text(json.dumps(printing(1, "Opt")), encoding="utf-8")

    def mark_and_fail(keys: Any) -> None:
        assert mark_names_due(keys) == 2
        raise RuntimeError("the import failed")

    with pytest.raises(RuntimeError):
        import_bulk(str(path), on_touched=mark_and_fail)
    assert due_names() == set()


def test_name_keys_are_looked_up_as_fast_after_an_import_as_later() -> None:
    """Their index keeps no list of pending entries, which each look-up would scan until the next vacuum."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT reloptions FROM pg_class WHERE relname = 'printing_name_keys'")
        assert cursor.fetchone()[0] == ["fastupdate=off"]
