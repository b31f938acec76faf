"""Suggestions to a person where no printing has a card's name, and never a vote."""

from __future__ import annotations

import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from cardpicker.catalogue.art_kind import ART_HASH_KIND
from cardpicker.catalogue.name_key import name_keys
from cardpicker.models import ArtOutcome, CanonicalArt, CanonicalCard, CardPrintingTag, ReviewItem, ReviewReason
from cardpicker.stage_d.name_index import SUGGESTED, NameIndex, trigrams
from cardpicker.stage_d.run import run_stage_d
from cardpicker.stage_d.suggestions import SuggestedBy, Unnamed, suggest
from cardpicker.tests.stage_d_cases import make_printing, read_card

KEYS = st.text(alphabet="abcde", min_size=1, max_size=9)


@settings(deadline=None)
@given(keys=st.sets(KEYS, max_size=30), asked=KEYS)
def test_the_index_finds_what_comparing_every_name_finds(keys: set[str], asked: str) -> None:
    """Best first, equals by key, at most five, none below the limit."""
    index = NameIndex({key: key.title() for key in keys})

    def similarity(key: str) -> float:
        ours, theirs = trigrams(asked), trigrams(key)
        return len(ours & theirs) / len(ours | theirs)

    ranked = sorted((-similarity(key), key) for key in keys if similarity(key) >= 0.3)
    assert index.suggest(asked) == [(key.title(), round(-value, 3)) for value, key in ranked[:SUGGESTED]]


def test_equals_come_in_the_order_of_their_keys() -> None:
    """Also where there are more of them than a sort takes in at once."""
    keys = [f"abcde{letter}" for letter in "zyxwvutsrqponmlkjihgfedcba9876543210"]

    assert [name for name, _ in NameIndex({key: key for key in keys}).suggest("abcde")] == sorted(keys)[:SUGGESTED]


def test_a_name_is_suggested_once_by_whichever_key_is_likest() -> None:
    """Faces and printed names of one card are keys of one name."""
    index = NameIndex({"fireice": "Fire // Ice", "fire": "Fire // Ice", "ice": "Fire // Ice", "firebolt": "Firebolt"})

    found = index.suggest("fires")

    assert [name for name, _ in found] == ["Fire // Ice", "Firebolt"]
    assert index.suggest("") == NameIndex({}).suggest("fire") == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("Lightening Bolt", "Lightning Bolt"),
        ("Swords to Plowshare", "Swords to Plowshares"),
        ("Jace the Mindsculpter", "Jace, the Mind Sculptor"),
        ("Fire / Ise", "Fire // Ice"),
    ],
)
def test_a_slip_of_the_uploader_finds_the_name(written: str, meant: str) -> None:
    """Misspelled names are asked with the right one first, and nobody votes."""
    for number, name in enumerate(
        ("Lightning Bolt", "Lightning Blast", "Swords to Plowshares", "Jace, the Mind Sculptor", "Fire // Ice"), 1
    ):
        make_printing(name, "tst", str(number))
    card = read_card(written)

    run_stage_d([card.pk], run_id="r")

    if written != "Fire / Ise":  # one face is a name of the catalog, so that card has candidates
        item = ReviewItem.objects.get()
        assert item.reason == ReviewReason.UNKNOWN_NAME
        assert item.suggestions[0]["name"] == meant
    else:
        assert suggest({1: Unnamed(name_keys=name_keys(written), art_hash=None)})[1][0].name == meant
    assert not CardPrintingTag.objects.exists()


def hashed(printing: CanonicalCard, value: int) -> None:
    """Give a printing's illustration a hash."""
    key = uuid.uuid4()
    CanonicalCard.objects.filter(pk=printing.pk).update(illustration_id=key, art_hash=value)
    CanonicalArt.objects.create(key=key, kind=ART_HASH_KIND, outcome=ArtOutcome.HASHED, art_hash=value)


@pytest.mark.django_db
def test_art_suggests_whose_picture_it_is() -> None:
    """A name nobody knows over art that the catalog has: that card is suggested first, by art."""
    bolt, blast = make_printing("Lightning Bolt", "tst", "1"), make_printing("Lightning Blast", "tst", "2")
    hashed(bolt, 0x0F0F_0F0F_0F0F_0F0F)
    hashed(blast, 0x00FF_00FF_00FF_00FF)

    found = suggest(
        {
            1: Unnamed(name_keys=("blitzschlag",), art_hash=0x0F0F_0F0F_0F0F_0F0E),
            2: Unnamed(name_keys=("blitzschlag",), art_hash=0x7531_9BDF_1357_2468),
            3: Unnamed(name_keys=("lightningbolt2",), art_hash=0x00FF_00FF_00FF_00FF),
        }
    )

    assert [(each.name, each.by) for each in found[1]] == [("Lightning Bolt", SuggestedBy.ART)]
    assert found[2] == ()
    assert [each.name for each in found[3]] == ["Lightning Blast", "Lightning Bolt"]


@pytest.mark.django_db
def test_a_changed_catalog_is_seen_at_once() -> None:
    """What a process holds of the catalog is replaced when printings or art come in, also by other ways."""
    asked = {1: Unnamed(name_keys=("shok",), art_hash=None)}
    assert suggest(asked)[1] == ()
    printing = make_printing("Shock", "tst", "1")
    assert [each.name for each in suggest(asked)[1]] == ["Shock"]

    by_art = {1: Unnamed(name_keys=("zzz",), art_hash=12345)}
    assert suggest(by_art)[1] == ()
    hashed(printing, 12345)
    assert [each.name for each in suggest(by_art)[1]] == ["Shock"]


@pytest.mark.django_db
def test_a_batch_costs_few_queries_and_a_second_one_loads_nothing() -> None:
    """One look at the version each for names and art; the catalog is not read again."""
    make_printing("Shock", "tst", "1")
    batch = {pk: Unnamed(name_keys=(f"shok{pk}",), art_hash=pk) for pk in range(1, 26)}
    suggest(batch)

    with CaptureQueriesContext(connection) as captured:
        suggest(batch)

    assert len(captured) <= 2
