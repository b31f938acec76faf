"""The pages: links that lead somewhere, claims that hold, settings as the code has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cardpicker.environment import describe
from scripts.ops import lint_docs, settings_page

PROJECT = Path(__file__).resolve().parents[2]


def write(root: Path, name: str, text: str) -> list[str]:
    """Write a page and return the list of files that the lint is given."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return [name]


def test_pages_of_the_repository_have_no_faults(capsys: pytest.CaptureFixture[str]) -> None:
    """The lint passes over what is there now."""
    assert lint_docs.main() == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "link",
    [
        "[x](missing.md)",
        "[x](../page.md)",
        "![x](no.png)",
        "[x](#no-such-heading)",
        "[x](page.md#no-such)",
        "[r]: gone.md",
    ],
)
def test_link_to_nowhere_is_named_with_its_line(tmp_path: Path, link: str) -> None:
    """A relative link to no file or no heading is a fault."""
    files = write(tmp_path, "page.md", f"# Title\n\n{link}\n")

    faults = list(lint_docs.broken_links(tmp_path, files))

    assert len(faults) == 1
    assert faults[0].startswith("page.md:3: ")


def test_good_links_and_code_are_left_alone(tmp_path: Path) -> None:
    """Addresses, files, folders, headings, titles and whatever stands in code are no faults."""
    text = (
        "# A title: with `code` & signs\n\n## Twice\n\n## Twice\n\n"
        "[a](https://example.org/x) [b](page.md) [c](.) [d](#twice-1) [e](page.md#a-title-with-code--signs)\n"
        "[f](page.md 'its title') `[g](missing.md)`\n\n```\n[h](missing.md)\n```\n"
    )
    files = write(tmp_path, "page.md", text)

    assert list(lint_docs.broken_links(tmp_path, files)) == []


@pytest.mark.parametrize(
    "source",
    ["from django.db import models", "def f():\n    import cardpicker.models", "from . import neighbour"],
)
def test_clean_claim_is_checked_against_imports(tmp_path: Path, source: str) -> None:
    """A file listed as CLEAN that imports the project or Django, anywhere in it, is a fault."""
    write(tmp_path, "a/primitive.py", f"{source}\n")
    write(tmp_path, lint_docs.CLEAN_PAGE, "| `a/primitive.py` | CLEAN |\n")

    assert len(list(lint_docs.false_clean_claims(tmp_path))) == 1


def test_true_clean_claim_passes_and_a_missing_file_does_not(tmp_path: Path) -> None:
    """The standard library is clean; a file that is not there proves nothing."""
    write(tmp_path, "a/primitive.py", "import os\nfrom collections import abc\n")
    write(tmp_path, lint_docs.CLEAN_PAGE, "| `a/primitive.py` | CLEAN |\n| `a/gone.py` | CLEAN |\n")

    assert [fault.split(": ")[1] for fault in lint_docs.false_clean_claims(tmp_path)] == [
        "a/gone.py is listed as CLEAN and does not exist"
    ]


def test_file_that_must_be_split_is_a_fault(tmp_path: Path) -> None:
    """Above the limit a fault, above the wish a warning, below neither."""
    for name, lines in (
        ("short.py", 10),
        ("long.py", lint_docs.WANTED_LINES + 1),
        ("huge.py", lint_docs.MOST_LINES + 1),
    ):
        write(tmp_path, name, "x = 1\n" * lines)
    files = ["short.py", "long.py", "huge.py"]

    assert [line.split(":")[0] for line in lint_docs.oversized(tmp_path, files)] == ["huge.py"]
    assert [line.split(" ")[0] for line in lint_docs.size_warnings(tmp_path, files)] == ["long.py"]


def test_settings_page_says_what_the_code_says() -> None:
    """Every setting is on the page with its default, and nothing else is."""
    page = settings_page.PAGE.read_text(encoding="utf-8")

    assert page == settings_page.page()
    for settings_class in settings_page.ROOMS.values():
        assert all(f"`{setting.variable}`" in page for setting in describe(settings_class))
