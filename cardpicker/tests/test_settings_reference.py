"""The settings page against the settings: a row for each, saying what the code does."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

import config.settings
from cardpicker.environment import Setting, describe

PAGE = Path(settings.BASE_DIR) / "docs" / "reference" / "settings.md"
#: Whatever a process loads when it starts, so that no room's settings can be forgotten.
LOADED = [value for value in vars(config.settings).values() if is_dataclass(value) and not isinstance(value, type)]
REAL = [each for loaded in LOADED for each in describe(type(loaded))]


def rows() -> dict[str, list[str]]:
    """Return the cells of every row after the one with the variable's name, by variable."""
    cells = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    ]
    return {row[0].strip("`"): row[1:] for row in cells}


def in_words(default: Any) -> str:
    """Return a default as a person sets it."""
    if isinstance(default, bool):
        return f"`{int(default)}`"
    return f"`{default}`" if default != "" else "empty"


@pytest.mark.parametrize("declared", REAL, ids=lambda declared: declared.variable)
def test_setting_has_a_row_that_is_true(declared: Setting) -> None:
    """Default, allowed values and meaning are the code's; a default that this host computed is said in words."""
    default, allowed, meaning = rows()[declared.variable]

    assert meaning == declared.help
    assert allowed == (declared.range_text or "any")
    if callable(declared.default):
        assert not re.search(r"\d", default)
        assert "default " in meaning
    else:
        assert default == in_words(declared.default)


def test_page_has_no_row_that_nothing_reads() -> None:
    """A setting that is gone from the code is gone from the page."""
    assert set(rows()) == {declared.variable for declared in REAL}
