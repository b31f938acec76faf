"""Name keys: what is the same name and what is not."""

from __future__ import annotations

import pytest

from cardpicker.catalogue.name_key import KEY_MAX_LENGTH, name_key, name_keys
from cardpicker.models import CanonicalCard, Card


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Lightning Bolt", "lightningbolt"),
        ("LIGHTNING bolt", "lightningbolt"),
        ("LightningBolt", "lightningbolt"),
        ("lightning_bolt", "lightningbolt"),
        ("  Lightning\t Bolt\n", "lightningbolt"),
        ("ＬＩＧＨＴＮＩＮＧ　Ｂｏｌｔ", "lightningbolt"),
        ("Lightning\x00 Bolt\ud800", "lightningbolt"),
        ("Lightning Bolt (2)", "lightningbolt"),
        ("Lightning Bolt(12)", "lightningbolt"),
        ("Lightning Bolt - Copy", "lightningbolt"),
        ("Lightning Bolt - Copy (3)", "lightningbolt"),
        ("Lightning Bolt - Copy - Copy", "lightningbolt"),
        ("lightning_bolt_-_copy", "lightningbolt"),
        ("Lightning Bolt – Kopie", "lightningbolt"),
        ("Copy of Lightning Bolt", "lightningbolt"),
        ("Copy of Copy of Lightning Bolt (1)", "lightningbolt"),
        ("Cópia de Lightning Bolt", "lightningbolt"),
        ("Lightning Bolt (MH2) {123} [Artist]", "lightningbolt"),
        ("Lightning Bolt [Foil (etched)]", "lightningbolt"),
        ("Lim-Dûl's Vault", "limdulsvault"),
        ("Lim-Dul’s Vault", "limdulsvault"),
        ("Lim-DuĚl's Vault".replace("Ě", "\u0302"), "limdulsvault"),
        ("Limʼdul`s＇ Vault", "limdulsvault"),
        ("Æther Vial", "aethervial"),
        ("Jötun Grunt", "jotungrunt"),
        ("Łódź Øre œuvre straße", "lodzoreoeuvrestrasse"),
        ("Ratonhnhaké꞉ton", "ratonhnhaketon"),
        ("Wizards of the Coast® Service™", "wizardsofthecoastservice"),
        ("Minsc & Boo, Timeless Heroes", "minscandbootimelessheroes"),
        ("+2 Mace", "2mace"),
        ("Pirated Copy", "piratedcopy"),
        ("Copy Artifact", "copyartifact"),
        ("B.F.M. (Big Furry Monster)", "bfm"),
        ("チャンドラ・ナラー", "チャンドラナラー"),
        ("Шиванский дракон", "шиванскиидракон"),
        ("ガ", "ガ"),
    ],
)
def test_key_is_letters_and_digits(name: str, key: str) -> None:
    """Case, spaces, punctuation, diacritics, copy marks and bracketed hints make no difference."""
    assert name_key(name) == key


@pytest.mark.parametrize(
    ("name", "key"), [("_____", "_____"), ("(2)", "2"), ("[Bolt]", "bolt"), ("🔥", "🔥"), ("", ""), ("\x00", "")]
)
def test_key_is_empty_only_when_nothing_shows(name: str, key: str) -> None:
    """What would leave nothing behind is not left out."""
    assert name_key(name) == key
    assert name_keys(name) == ((key,) if key else ())


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("Lightning Bolt", ("lightningbolt",)),
        ("Fire // Ice", ("fireice", "fire", "ice")),
        ("Fire//Ice (2)", ("fireice", "fire", "ice")),
        ("Fire / Ice", ("fireice", "fire", "ice")),
        ("Fire ／／ Ice", ("fireice", "fire", "ice")),
        ("Fire ⧸⧸ Ice", ("fireice", "fire", "ice")),
        ("Bow // Bow", ("bowbow", "bow")),
        ("Who // What // When // Where // Why", ("whowhatwhenwherewhy", "who", "what", "when", "where", "why")),
        ("Summon: Choco/Mog", ("summonchocomog",)),
        ("// Ice", ("ice",)),
        ("//", ("//",)),
    ],
)
def test_each_face_has_a_key(name: str, keys: tuple[str, ...]) -> None:
    """The full name comes first, then the faces; none is empty and none comes twice."""
    assert name_keys(name) == keys


@pytest.mark.parametrize(
    "name", ["a" * 10_000, "ﷺ" * 10_000, "(" * 10_000, "/ " * 5_000, "- copy" * 2_000, "copy of " * 2_000, " " * 10_000]
)
def test_keys_of_overlong_names_fit_their_columns(name: str) -> None:
    """No name, however long, makes a key that the database refuses."""
    assert all(0 < len(key) <= KEY_MAX_LENGTH for key in name_keys(name))


def test_key_length_is_that_of_the_columns() -> None:
    """The pure module and the models agree on how long a key may be."""
    for model in (Card, CanonicalCard):
        assert model._meta.get_field("name_key").max_length == KEY_MAX_LENGTH


def test_key_of_a_key_is_itself() -> None:
    """A key can be looked up again as if it were a name."""
    for name in ("Lim-Dûl's Vault", "Fire // Ice", "チャンドラ・ナラー", "Æther Vial"):
        assert name_key(name_key(name)) == name_key(name)
