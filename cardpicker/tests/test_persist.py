"""Evidence into the database, beside rivals and with whatever text an image holds."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import OperationalError, connection, connections, transaction
from django.utils import timezone

from cardpicker.models import Card, CardWork, ImageEvidence
from cardpicker.stage_c.currency import current_evidence
from cardpicker.stage_c.evidence import CardEvidence
from cardpicker.stage_c.outcomes import CardGone, CardOutcome, Crashed, Deferred, LeaseLostError, Stored
from cardpicker.stage_c.persist import persist_evidence, settle_alone
from cardpicker.stage_c.storable import clean_json, json_text
from cardpicker.stage_c.transfer import checksums_of, transfer_evidence
from cardpicker.tests.conveyor_rig import wait_until
from cardpicker.tests.stage_c_jobs import evidence, image
from cardpicker.tests.stage_c_rig import add_cards
from cardpicker.tests.work_support import somebody_waits_for_us

PATIENCE_S = 30.0


def persist(
    card: Card, what: CardEvidence, settle: Callable[[int, CardOutcome], None] = lambda card_id, outcome: None
) -> CardOutcome:
    return persist_evidence(card.pk, card.image_version, what, run_id="r", elapsed_ms=12, settle=settle)


@pytest.fixture
def card(tmp_path: Path, db: None) -> Card:
    return add_cards(tmp_path / "cards", [b"\x89PNG"])[0]


def test_evidence_is_current_once_it_is_stored(card: Card) -> None:
    """Image version and manifest are what currency is made of."""
    assert persist(card, evidence(b"x", text="mkm")) == Stored()

    assert current_evidence().get().card == card


def test_storing_again_replaces_the_row(card: Card) -> None:
    """One row a card, whose judgment starts anew and which is nobody's copy any more."""
    persist(card, evidence(b"x", text="old"))
    ImageEvidence.objects.update(judged_by="calculators", transferred_from=card)
    created_at = ImageEvidence.objects.get().created_at

    persist(card, evidence(b"y", text="new"))

    row = ImageEvidence.objects.get()
    assert (row.set_code, row.judged_by, row.transferred_from, row.elapsed_ms) == ("new", "", None, 12)
    assert row.created_at == created_at
    assert row.updated_at > created_at


def test_text_that_postgresql_cannot_hold_is_cleaned(card: Card) -> None:
    """NUL and lone surrogates vanish from keys, values and columns; the rest of the text stays."""
    assert persist(card, evidence(b"x", text="a\x00b\ud800c")) == Stored()

    row = ImageEvidence.objects.get()
    assert (row.set_code, row.collector_number) == ("abc", "abc")
    assert row.readings["collector_line"]["raw"] == "abc"
    assert row.readings["collector_line"]["abc"] == "abc"


def test_numbers_that_json_does_not_know_become_null() -> None:
    """NaN and infinity would be refused by the column."""
    assert clean_json({"a": float("nan"), "b": [float("inf"), 1.5], "c": (1, True, None)}) == {
        "a": None,
        "b": [None, 1.5],
        "c": [1, True, None],
    }


@pytest.mark.parametrize(
    "value",
    [
        {"plain": ["text", 1, 1.5, None, True]},
        {"only NUL": ["a\x00b"]},
        {"only NaN": [float("nan")]},
        {"only half a character": ["a\udfffb"]},
        {"a\x00b": ["c\x00\ud800", "é", "\U0001f600", "\\u0000", "\\ud800"]},
        {"nan": float("nan"), "tuple": (1, 2), "other": Path("x")},
    ],
)
def test_json_is_of_what_a_column_can_hold(value: object) -> None:
    """Text is cleaned or left as it is, whichever of the two ways it takes."""
    assert json.loads(json_text(value)) == clean_json(value)


def test_promoted_text_too_long_for_its_column_is_left_out(card: Card) -> None:
    """Half a set code would be a wrong one; the reading keeps the whole text."""
    assert persist(card, evidence(b"x", text="x" * 200)) == Stored()

    row = ImageEvidence.objects.get()
    assert (row.set_code, row.collector_number) == ("", "")
    assert row.readings["collector_line"]["raw"] == "x" * 200


@pytest.mark.parametrize("art_hash", [0, 2**63, -(2**63) - 1])
def test_a_hash_that_is_none_is_stored_as_none(card: Card, art_hash: int) -> None:
    """Zero stands for a flat picture, and there is nothing beyond 64 bits."""
    assert persist(card, dataclasses.replace(evidence(b"x"), art_hash=art_hash)) == Stored()

    assert ImageEvidence.objects.get().art_hash is None


def test_evidence_that_the_database_refuses_costs_its_own_card_only(card: Card) -> None:
    """A value out of the column's range is the card's outcome, and its work is settled."""
    settled: list[CardOutcome] = []
    what = dataclasses.replace(evidence(b"x"), width_px=2**40)

    outcome = persist(card, what, lambda card_id, outcome: settled.append(outcome))

    assert isinstance(outcome, Crashed)
    assert settled == [outcome]
    assert not ImageEvidence.objects.exists()


def test_evidence_and_work_are_written_together_or_not_at_all(card: Card) -> None:
    """A settlement that fails takes the evidence back with it."""

    def fail(card_id: int, outcome: CardOutcome) -> None:
        CardWork.objects.filter(pk=card_id).update(last_outcome="stored")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        persist(card, evidence(b"x"), fail)

    assert not ImageEvidence.objects.exists()
    assert CardWork.objects.get().last_outcome == ""


def test_a_lost_lease_takes_the_evidence_back(card: Card) -> None:
    """The rival's result stands."""

    def lose(card_id: int, outcome: CardOutcome) -> None:
        raise LeaseLostError("claimed by another")

    assert isinstance(persist(card, evidence(b"x"), lose), Deferred)
    assert not ImageEvidence.objects.exists()


@pytest.mark.parametrize("change", ["delete", "remove", "replace"])
def test_a_card_that_is_gone_gets_no_evidence(card: Card, change: str) -> None:
    """Deleted, removed or with another image: settled as gone, though its work may be gone as well."""
    cards = Card.objects.filter(pk=card.pk)
    match change:
        case "delete":
            cards.delete()
        case "remove":
            cards.update(removed_at=timezone.now())
        case "replace":
            cards.update(image_version="new")

    def lose(card_id: int, outcome: CardOutcome) -> None:
        raise LeaseLostError("no work of that card")

    assert isinstance(
        persist_evidence(card.pk, card.image_version, evidence(b"x"), run_id="r", elapsed_ms=0, settle=lose), CardGone
    )
    assert isinstance(settle_alone(card.pk, CardGone(detail="x"), lose), CardGone)
    assert not ImageEvidence.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_card_that_changes_while_it_is_waited_for_gets_no_evidence(tmp_path: Path) -> None:
    """Another image is committed between the start of the storing statement and its lock on the card."""
    [card] = add_cards(tmp_path / "cards", [b"\x89PNG"])
    found: list[CardOutcome] = []

    def store() -> None:
        try:
            found.append(persist(card, evidence(b"x")))
        finally:
            connections.close_all()

    replaced_meanwhile(card, store)

    assert found == [CardGone(detail="image replaced in flight")]
    assert not ImageEvidence.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_card_that_changes_while_it_is_waited_for_gets_no_copy(tmp_path: Path) -> None:
    """Evidence of equal bytes is of no use to a card whose bytes are others by now."""
    donor, card = (add_cards(tmp_path / key, [image(text="mkm")], key=key)[0] for key in "ab")
    persist(donor, evidence(b"x"))
    wanted = checksums_of(card)
    found: list[CardOutcome | None] = []

    def copy() -> None:
        try:
            found.append(
                transfer_evidence(card.pk, card.image_version, wanted, donor.pk, run_id="r", settle=lambda *_: None)
            )
        finally:
            connections.close_all()

    replaced_meanwhile(card, copy)

    assert found == [CardGone(detail="image replaced in flight")]
    assert not ImageEvidence.objects.filter(card=card).exists()


def replaced_meanwhile(card: Card, write: Callable[[], None]) -> None:
    """Let ``write`` run until it waits for the card, which then has another image."""
    thread = threading.Thread(target=write)
    with transaction.atomic():
        Card.objects.filter(pk=card.pk).update(image_version="new")
        thread.start()
        wait_until(somebody_waits_for_us, "the other to wait for the card", PATIENCE_S)
    thread.join(PATIENCE_S)


@pytest.mark.django_db(transaction=True)
def test_a_deadlock_with_a_rival_is_tried_again_as_a_whole(tmp_path: Path) -> None:
    """Evidence and settlement both come back after the database chose this transaction as the victim."""
    [card] = add_cards(tmp_path / "cards", [b"\x89PNG"])
    work_locked, card_locked = threading.Event(), threading.Event()

    def rival() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                # The rival's own check for deadlocks must come second.
                cursor.execute("SET LOCAL deadlock_timeout = '60s'")
                CardWork.objects.select_for_update().get(pk=card.pk)
                work_locked.set()
                card_locked.wait(PATIENCE_S)
                Card.objects.select_for_update().get(pk=card.pk)
        finally:
            connections.close_all()

    tries: list[int] = []

    def settle(card_id: int, outcome: CardOutcome) -> None:
        tries.append(card_id)
        card_locked.set()
        CardWork.objects.filter(pk=card_id).update(last_outcome="stored")

    thread = threading.Thread(target=rival)
    thread.start()
    assert work_locked.wait(PATIENCE_S)
    outcome = persist(card, evidence(b"x"), settle)
    thread.join(PATIENCE_S)

    assert outcome == Stored()
    assert len(tries) == 2
    assert ImageEvidence.objects.get().card == card
    assert CardWork.objects.get().last_outcome == "stored"


def test_an_error_that_is_no_rivals_doing_is_not_tried_again(card: Card) -> None:
    """A database that is not there is a surprise, not a race."""
    tries: list[int] = []

    def fail(card_id: int, outcome: CardOutcome) -> None:
        tries.append(card_id)
        raise OperationalError("the server went away")

    with pytest.raises(OperationalError):
        persist(card, evidence(b"x"), fail)

    assert len(tries) == 1
