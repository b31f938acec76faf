"""Import of printings: what a good file does to the catalog, and what a second one does."""

from __future__ import annotations

import gzip
import json
import os
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from cardpicker.catalogue.errors import ImportBusyError
from cardpicker.catalogue.lexicon import artists_by_name_key, load_lexicon
from cardpicker.catalogue.scryfall import import_bulk
from cardpicker.catalogue.version import read_version
from cardpicker.models import ArtOutcome, CanonicalArt, CanonicalArtist, CanonicalCard, CanonicalExpansion

REAL_FILE = Path(settings.BASE_DIR).parent / "shared" / "cases" / "printings.jsonl.gz"


def card(number: int, **fields: Any) -> dict[str, Any]:
    """Return a bulk object with what every printing has."""
    return {
        "object": "card",
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "name": f"Card {number}",
        "lang": "en",
        "set": "tst",
        "set_name": "Test Set",
        "collector_number": str(number),
        "artist": "Ann Artist",
        "released_at": "2020-02-02",
        **fields,
    }


def lines(*cards: Any) -> bytes:
    """Return JSON lines."""
    return b"".join(json.dumps(each).encode() + b"\n" for each in cards)


def written(path: Path, content: bytes) -> str:
    """Write a bulk file and return its location."""
    path.write_bytes(content)
    return str(path)


@pytest.mark.django_db
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("shape", ["lines", "array of lines", "one line", "indented", "with BOM"])
def test_every_shape_of_file_is_read(tmp_path: Path, shape: str, packed: bool) -> None:
    """Arrays and lines, compressed or not, are told apart by content."""
    cards = [card(number, prices={"usd": None}, card_faces="odd") for number in (1, 2, 3)]
    content = {
        "lines": lines(*cards),
        "array of lines": b"[\n" + b",\n".join(json.dumps(each).encode() for each in cards) + b"\n]\n",
        "one line": json.dumps(cards).encode(),
        "indented": json.dumps(cards, indent=2).encode(),
        "with BOM": b"\xef\xbb\xbf" + lines(*cards),
    }[shape]

    report = import_bulk(written(tmp_path / "bulk", gzip.compress(content) if packed else content))

    assert (report.read, report.new, report.bad) == (3, 3, 0)
    assert CanonicalCard.objects.count() == 3


@pytest.mark.django_db
def test_second_import_changes_only_what_differs(tmp_path: Path) -> None:
    """A printing that is the same is left alone; one that is not is updated under its own row."""
    import_bulk(written(tmp_path / "a", lines(*map(card, range(1, 6)))))
    before = dict(CanonicalCard.objects.values_list("identifier", "pk"))

    again = import_bulk(str(tmp_path / "a"))
    other = import_bulk(written(tmp_path / "b", lines(card(1, rarity="rare"), card(2), card(9))))

    assert (again.new, again.changed, again.unchanged) == (0, 0, 5)
    assert (other.new, other.changed, other.unchanged) == (1, 1, 1)
    assert {k: v for k, v in CanonicalCard.objects.values_list("identifier", "pk") if k in before} == before
    assert CanonicalCard.objects.get(name="Card 1").rarity == "rare"


@pytest.mark.django_db
def test_double_faced_printing_is_found_by_every_name_it_bears(tmp_path: Path) -> None:
    """Faces, printed and flavor names are keys; artist, illustration and image come from the first face that has them."""
    double = card(
        1,
        name="Front Side // Back Side",
        printed_name="Vorderseite // Rückseite",
        flavor_name="Mothra's Egg",
        artist=None,
        card_faces=[
            {"name": "Front Side", "artist": "Face Artist", "image_uris": {"png": "https://example.org/front.png"}},
            {"name": "Back Side", "printed_name": "裏面", "illustration_id": "00000000-0000-4000-8000-00000000000a"},
        ],
    )

    import_bulk(written(tmp_path / "bulk", lines(double)))

    found = CanonicalCard.objects.get()
    assert found.name_key == "frontsidebackside"
    assert {"frontside", "backside", "vorderseite", "ruckseite", "mothrasegg", "裏面"} <= set(found.name_keys)
    assert "frontsideandbackside" in found.name_keys
    assert found.artist is not None
    assert found.artist.name == "Face Artist"
    assert found.image_uri == "https://example.org/front.png"
    assert str(found.illustration_id).endswith("a")


@pytest.mark.django_db
def test_only_the_naming_fields_are_needed(tmp_path: Path) -> None:
    """Optional fields that are missing or of another type count as absent."""
    bare = {"id": card(1)["id"], "name": "Bare", "set": "TST", "collector_number": "1★"}
    odd = card(2, artist=7, released_at="soon", promo_types={"a": 1}, image_uris=[], illustration_id="x", lang=None)

    report = import_bulk(written(tmp_path / "bulk", lines(bare, odd)))

    assert (report.new, report.bad) == (2, 0)
    assert list(CanonicalExpansion.objects.values_list("code", "name")) == [("tst", "Test Set")]
    assert CanonicalCard.objects.filter(artist=None, language="en", released_at=None).count() == 2


@pytest.mark.django_db
def test_art_hash_is_kept_until_the_illustration_changes(tmp_path: Path) -> None:
    """What others worked out about a printing outlives an import, but not another picture."""
    first = card(1, illustration_id="00000000-0000-4000-8000-00000000000a")
    import_bulk(written(tmp_path / "a", lines(first)))
    CanonicalCard.objects.update(art_hash=42)

    import_bulk(written(tmp_path / "b", lines({**first, "rarity": "rare"})))
    kept = CanonicalCard.objects.get().art_hash
    import_bulk(written(tmp_path / "c", lines({**first, "illustration_id": "00000000-0000-4000-8000-00000000000b"})))

    assert kept == 42
    assert CanonicalCard.objects.get().art_hash is None


@pytest.mark.django_db
def test_a_printing_of_hashed_art_has_its_hash_at_once(tmp_path: Path) -> None:
    """New printings, and those that change to known art, take the illustration's hash; the version is raised."""
    art = "00000000-0000-4000-8000-00000000000a"
    CanonicalArt.objects.create(key=art, kind="k", outcome=ArtOutcome.HASHED, art_hash=42)
    before = read_version()[0]

    import_bulk(written(tmp_path / "a", lines(card(1, illustration_id=art), card(2))))
    fresh = dict(CanonicalCard.objects.values_list("collector_number", "art_hash"))
    import_bulk(written(tmp_path / "b", lines(card(2, illustration_id=art))))

    assert fresh == {"1": 42, "2": None}
    assert set(CanonicalCard.objects.values_list("art_hash", flat=True)) == {42}
    assert read_version()[0] == before + 2


@pytest.mark.django_db
def test_last_of_two_records_with_one_id_counts(tmp_path: Path) -> None:
    """A repeated id is reported with both places, and importing again changes nothing."""
    location = written(tmp_path / "bulk", lines(card(1, rarity="rare"), card(2), card(1, rarity="common")))

    report = import_bulk(location)
    again = import_bulk(location)

    assert (report.read, report.new, report.repeated) == (3, 2, 1)
    assert "line 1" in report.repeated_named[0]
    assert "line 3" in report.repeated_named[0]
    assert CanonicalCard.objects.get(name="Card 1").rarity == "common"
    assert (again.changed, again.unchanged) == (0, 2)


@pytest.mark.django_db(transaction=True)
def test_rival_import_is_turned_away(tmp_path: Path) -> None:
    """While one import reads its file, a second one says so and changes nothing."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def import_from_pipe() -> None:
        import_bulk(str(pipe))
        connection.close()

    slow = threading.Thread(target=import_from_pipe)
    slow.start()
    with pipe.open("wb") as stream:
        with pytest.raises(ImportBusyError, match="wait for it"):
            import_bulk(written(tmp_path / "rival", lines(card(2))))
        stream.write(lines(card(1)))
    slow.join(timeout=30)

    assert list(CanonicalCard.objects.values_list("name", flat=True)) == ["Card 1"]


@pytest.mark.django_db
def test_lexicon_knows_the_sets_and_the_artists_of_a_name(tmp_path: Path, django_assert_num_queries: Any) -> None:
    """Set codes come as a set; artists of a whole batch of names come in one query."""
    fire = card(1, name="Fire // Ice", artist="Zoe"), card(2, name="Fire // Ice", artist="Ann"), card(3, set="oth")
    import_bulk(written(tmp_path / "bulk", lines(*fire)))

    with django_assert_num_queries(1):
        artists = artists_by_name_key(["ice", "fireice", "nothing", ""])

    assert artists == {"ice": ("Ann", "Zoe"), "fireice": ("Ann", "Zoe")}
    assert load_lexicon() == {"tst", "oth"}
    assert artists_by_name_key([]) == {}


@pytest.mark.django_db
def test_command_reports_in_one_line(tmp_path: Path) -> None:
    """An operator reads how many printings are new, changed and unchanged."""
    output = StringIO()

    call_command("import_canonical_card_data", "--from", written(tmp_path / "bulk", lines(card(1))), stdout=output)

    assert "1 printings read" in output.getvalue()
    assert "1 new, 0 changed, 0 unchanged; 0 bad records skipped, 0 repeated." in output.getvalue()


@pytest.mark.django_db
@pytest.mark.skipif(not REAL_FILE.exists(), reason="private case: ../shared/cases/printings.jsonl.gz is not here")
def test_real_file_is_imported_whole() -> None:
    """Every printing of a real extract arrives and can be looked up."""
    report = import_bulk(str(REAL_FILE))

    assert (report.new, report.bad, report.repeated) == (71_414, 0, 0)
    assert CanonicalArtist.objects.filter(name="Christopher Rush").exists()
    assert CanonicalCard.objects.filter(name_keys__overlap=["limdulsvault"]).exists()
