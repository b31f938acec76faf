"""Write docs/reference/settings.md from the settings in the code: ``settings_page.py [--check]``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from cardpicker.environment import Setting, describe
from cardpicker.sources.settings import SourcesSettings
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_e.settings import StageESettings
from config.settings import SiteSettings

PAGE = PROJECT / "docs" / "reference" / "settings.md"
ROOMS: dict[str, type[Any]] = {
    "The site": SiteSettings,
    "Sources: where cards come from": SourcesSettings,
    "Stage C: reading images": StageCSettings,
    "Stage E: when, how much, whether": StageESettings,
}
HEAD = ("variable", "default", "allowed", "meaning")
INTRODUCTION = """# Settings

Every setting is a variable of the environment, read once when a process starts. A value that is out of range stops the process with the name of the variable and what is allowed. A yes-or-no setting takes `1` or `0`.

This page is made from the code by `.venv/bin/python scripts/ops/settings_page.py`; `scripts/ops/check.sh` compares the two.
"""


def main(arguments: list[str]) -> int:
    """Write the page, or tell whether it says what the code says."""
    wanted = page()
    if "--check" not in arguments:
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(wanted, encoding="utf-8")
        return 0
    there = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if there == wanted:
        return 0
    print(f"{PAGE.relative_to(PROJECT)} differs from the code: run .venv/bin/python scripts/ops/settings_page.py")
    return 1


def page() -> str:
    """Return the page as the code has it."""
    parts = [INTRODUCTION]
    for title, settings_class in ROOMS.items():
        parts.append(f"\n## {title}\n\n")
        parts.extend(_table([HEAD, *map(_row, describe(settings_class))]))
    return "".join(parts)


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table as the formatter of the pages lays it out."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |\n"


def _row(setting: Setting) -> tuple[str, ...]:
    allowed = setting.range_text.replace("|", "\\|") or "any"
    return f"`{setting.variable}`", _default(setting.default), allowed, setting.help.replace("|", "\\|")


def _default(default: Any) -> str:
    if callable(default):
        return "depends on the host"
    if isinstance(default, bool):
        return f"`{int(default)}`"
    return f"`{default}`" if default != "" else "empty"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
