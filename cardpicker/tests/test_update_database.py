"""update_database: which sources are synced, what an operator reads, and with which exit code it ends."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from cardpicker.management.commands import update_database
from cardpicker.models import Card, CardWork, Source
from cardpicker.sources.adding import add_folder
from cardpicker.sources.settings import SourcesSettings
from cardpicker.tests.test_sources_local_folder import fill

REAL_FOLDER = Path(settings.BASE_DIR).parent / "shared" / "cases" / "images"

pytestmark = pytest.mark.django_db


def update(*arguments: str) -> tuple[str, str]:
    """Run the command and return what it wrote to stdout and stderr."""
    output, errors = StringIO(), StringIO()
    call_command("update_database", *arguments, stdout=output, stderr=errors)
    return output.getvalue(), errors.getvalue()


def test_added_folder_is_synced_and_tabulated(tmp_path: Path) -> None:
    """The table is aligned and sums up; each problem is named with its source."""
    folder = fill(tmp_path / "My Cards", Bolt_jpg=b"1", Ice_png=b"2", notes_txt=b"3")

    output, errors = update("--add-folder", str(folder))

    header, _rule, row = output.splitlines()
    assert header.split() == [
        "source",
        "listed",
        "new",
        "changed",
        "unchanged",
        "returned",
        "removed",
        "held",
        "problems",
    ]
    assert row.split() == ["my-cards", "2", "2", "0", "0", "0", "0", "0", "1"]
    assert len(header) == len(row)
    assert errors == "my-cards: notes.txt: not an image file by its extension\n"
    assert CardWork.objects.filter(due_at__isnull=False).count() == 2


def test_same_folder_is_the_same_source(tmp_path: Path) -> None:
    """However its path is written; a name given later renames it."""
    fill(tmp_path / "cards", a_jpg=b"1")
    (tmp_path / "link").symlink_to("cards")

    update("--add-folder", str(tmp_path / "cards"))
    update("--add-folder", f"{tmp_path}/cards/../cards/", "--name", "Best cards")
    update("--add-folder", str(tmp_path / "link"))

    assert list(Source.objects.values_list("key", "name")) == [("cards", "Best cards")]
    assert Card.objects.count() == 1


def test_folders_of_one_name_get_keys_of_their_own(tmp_path: Path) -> None:
    """Names that leave no letters for a key do too."""
    paths = [tmp_path / name / "cards" for name in ("a", "b", "c")] + [tmp_path / "カード", tmp_path / "!"]
    for path in paths:
        path.mkdir(parents=True)

    assert [add_folder(str(path)).key for path in paths] == ["cards", "cards-2", "cards-3", "folder", "folder-2"]


def test_missing_folder_adds_no_source(tmp_path: Path) -> None:
    """A mistyped path is one line, and nothing has changed."""
    for path in (str(tmp_path / "nowhere"), "/dev/null", "a\0b", ""):
        with pytest.raises(CommandError, match=r"cannot list|names no folder"):
            update("--add-folder", path)
    assert not Source.objects.exists()


def test_one_failing_source_does_not_stop_the_others(tmp_path: Path) -> None:
    """The others are synced, the failure is named, and the command fails at the end."""
    add_folder(str(fill(tmp_path / "a", x_jpg=b"1")))
    broken = add_folder(str(fill(tmp_path / "b", x_jpg=b"1")))
    Source.objects.create(key="odd", name="Odd", kind="floppy", location="A:")
    add_folder(str(fill(tmp_path / "c", x_jpg=b"1")))
    Source.objects.filter(pk=broken.pk).update(location=str(tmp_path / "gone"))
    output, errors = StringIO(), StringIO()

    with pytest.raises(CommandError, match="2 of 4 sources could not be synced"):
        call_command("update_database", stdout=output, stderr=errors)

    assert [line.split()[0] for line in output.getvalue().splitlines()] == ["source", "──────", "a", "c"]
    assert "gone: cannot list the folder" in errors.getvalue()
    assert "odd: no kind of source is called 'floppy'" in errors.getvalue()
    assert set(Card.objects.values_list("source__key", flat=True)) == {"a", "c"}


def test_only_the_named_and_enabled_sources_are_synced(tmp_path: Path) -> None:
    """--source narrows, disabled sources rest."""
    for key in ("a", "b", "c"):
        add_folder(str(fill(tmp_path / key, x_jpg=b"1")))
    Source.objects.filter(key="c").update(enabled=False)

    update("--source", "b")
    assert set(Card.objects.values_list("source__key", flat=True)) == {"b"}
    update()
    assert set(Card.objects.values_list("source__key", flat=True)) == {"a", "b"}


def test_wrong_use_says_what_to_do(tmp_path: Path) -> None:
    """No source, an unknown key, a disabled source, a name without a folder."""
    with pytest.raises(CommandError, match="--add-folder PATH"):
        update()
    add_folder(str(fill(tmp_path / "a", x_jpg=b"1")))
    Source.objects.update(enabled=False)
    with pytest.raises(CommandError, match=r"No source is called b\. Sources: a\."):
        update("--source", "b")
    with pytest.raises(CommandError, match="Enable the source"):
        update("--source", "a")
    with pytest.raises(CommandError, match="--name goes with --add-folder"):
        update("--name", "x")
    with pytest.raises(CommandError, match="not allowed with"):
        update("--add-folder", str(tmp_path), "--add-drive", "0123456789abc")


def test_dry_run_says_what_would_be_and_writes_nothing(tmp_path: Path) -> None:
    """New, changed, returned and removed cards are counted; not even the source is added."""
    folder = fill(tmp_path / "cards", **{f"c{n}_jpg": b"%d" % n for n in range(20)})

    output, _ = update("--add-folder", str(folder), "--dry-run")
    assert output.splitlines()[2].split()[:3] == ["cards", "20", "20"]
    assert output.splitlines()[-1] == "dry run: nothing was written"
    assert not Source.objects.exists() and not Card.objects.exists()

    update("--add-folder", str(folder))
    before = Source.objects.values().get()
    cards = list(Card.objects.order_by("pk").values())
    fill(folder, c0_jpg=b"other", c99_jpg=b"new")
    (folder / "c1.jpg").unlink()
    output, _ = update("--add-folder", str(folder), "--name", "Other", "--dry-run")

    assert output.splitlines()[2].split()[1:7] == ["20", "1", "1", "18", "0", "1"]
    assert (Source.objects.values().get(), list(Card.objects.order_by("pk").values())) == (before, cards)


def test_a_manifest_is_added_by_path(tmp_path: Path) -> None:
    """Its rows become cards; the same file is the same source."""
    (tmp_path / "My List.csv").write_text("name,url\nBolt,https://images.example/1.jpg\nIce,\n")

    for path in (tmp_path / "My List.csv", tmp_path / "." / "My List.csv"):
        output, errors = update("--add-manifest", str(path))

    assert output.splitlines()[2].split()[:2] == ["my-list", "1"]
    assert errors == "my-list: line 3: it has no url\n"
    assert list(Source.objects.values_list("kind", "key")) == [("http_manifest", "my-list")]


def test_what_cannot_be_a_source_adds_none(tmp_path: Path) -> None:
    """A mistyped address is one line."""
    for option, address in (
        ("--add-manifest", str(tmp_path / "none.csv")),
        ("--add-manifest", "https://user:secret@a.example/list.csv"),
        ("--add-drive", "https://evil.example/drive/folders/0123456789abc"),
    ):
        with pytest.raises(CommandError) as raised:
            update(option, address)
        assert "\n" not in str(raised.value) and "secret" not in str(raised.value)
    assert not Source.objects.exists()


def test_a_drive_without_a_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is kept: the key may come later."""
    monkeypatch.setattr(settings, "SOURCES", SourcesSettings())
    errors = StringIO()

    with pytest.raises(CommandError, match="1 of 1"):
        call_command("update_database", "--add-drive", "0123456789abc", stdout=StringIO(), stderr=errors)

    assert "set GOOGLE_DRIVE_API_KEY" in errors.getvalue()
    assert Source.objects.get().location == "0123456789abc"


def test_held_removals_are_explained_and_confirmed(tmp_path: Path) -> None:
    """The operator reads how many cards are held and which command believes the listing."""
    folder = fill(tmp_path / "cards", **{f"c{n}_jpg": b"%d" % n for n in range(20)})
    update("--add-folder", str(folder))
    for number in range(3):
        (folder / f"c{number}.jpg").unlink()

    output, errors = update()
    assert output.splitlines()[2].split()[7] == "3"
    assert "update_database --source cards --confirm-removals" in errors

    output, errors = update("--source", "cards", "--confirm-removals")
    assert output.splitlines()[2].split()[6:8] == ["3", "0"]
    assert errors == ""


def test_list_of_problems_is_capped(tmp_path: Path) -> None:
    """A folder full of other things does not flood the terminal."""
    folder = fill(tmp_path / "cards", a_jpg=b"1", **{f"n{number}_txt": b"" for number in range(50)})

    _, errors = update("--add-folder", str(folder))

    assert len(errors.splitlines()) == 21
    assert "cards: … and 30 more problems" in errors


def test_dispatch_is_asked_for_only_when_something_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that finds nothing to do, and leaves nothing undone, is silent."""
    asked: list[str] = []
    monkeypatch.setattr(update_database, "request_dispatch", asked.append)

    update("--add-folder", str(fill(tmp_path / "cards", a_jpg=b"1")))
    assert asked == ["sync"]
    CardWork.objects.update(due_at=None)
    update()

    assert asked == ["sync"]


@pytest.mark.skipif(not REAL_FOLDER.exists(), reason="private case: ../shared/cases/images is not here")
def test_real_folder_is_synced_without_a_problem() -> None:
    """Every image of a real folder becomes a card under the name that cards.csv gives it."""
    output, errors = update("--add-folder", str(REAL_FOLDER))

    assert output.splitlines()[2].split()[1:3] == ["57", "57"]
    assert errors == ""
    assert Card.objects.filter(name_key="teferiheroofdominaria").exists()
