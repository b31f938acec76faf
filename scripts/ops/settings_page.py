"""Write docs/reference/settings.md from the settings in the code: ``settings_page.py [--check]``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from cardpicker.environment import Setting, describe
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.stage_e.settings import StageESettings
from config.settings import SiteSettings

PAGE = PROJECT / "docs" / "reference" / "settings.md"
ROOMS: dict[str, type[Any]] = {
    "The site": SiteSettings,
    "Stage C: reading images": StageCSettings,
    "Stage E: when, how much, whether": StageESettings,
}
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
    if squeezed(there) == squeezed(wanted):
        return 0
    print(f"{PAGE.relative_to(PROJECT)} differs from the code: run .venv/bin/python scripts/ops/settings_page.py")
    return 1


def page() -> str:
    """Return the page as the code has it."""
    parts = [INTRODUCTION]
    for title, settings_class in ROOMS.items():
        parts.append(f"\n## {title}\n\n| variable | default | allowed | meaning |\n| --- | --- | --- | --- |\n")
        parts.extend(_row(setting) for setting in describe(settings_class))
    return "".join(parts)


def squeezed(text: str) -> str:
    """Return ``text`` without what a formatter may change: runs of spaces and the lines under table heads."""
    return re.sub(r"-{3,}", "---", re.sub(r"[ \t]+", " ", text)).strip()


def _row(setting: Setting) -> str:
    allowed = setting.range_text.replace("|", "\\|") or "any"
    return f"| `{setting.variable}` | {_default(setting.default)} | {allowed} | {setting.help} |\n"


def _default(default: Any) -> str:
    if callable(default):
        return "depends on the host"
    if isinstance(default, bool):
        return f"`{int(default)}`"
    return f"`{default}`" if default != "" else "empty"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
