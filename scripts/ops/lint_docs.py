"""Check the pages against the repository: links, CLEAN claims, and the sizes that code is held to.

Standard library only. Reads what git tracks or would track, and prints one line for each fault.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

PROJECT = Path(__file__).resolve().parents[2]
CLEAN_PAGE = "docs/upstreaming/extractable-primitives.md"
NOT_CLEAN = frozenset({"cardpicker", "config", "django", "django_q"})
MOST_LINES = 500
WANTED_LINES = 300

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
PYTHON_PATH = re.compile(r"[\w./-]+\.py\b")


def main() -> int:
    """Print the faults and the warnings; return 1 when there is a fault."""
    files = tracked_files(PROJECT)
    for warning in size_warnings(PROJECT, files):
        print(f"warning: {warning}")
    faults = [*broken_links(PROJECT, files), *false_clean_claims(PROJECT), *oversized(PROJECT, files)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


def tracked_files(root: Path) -> list[str]:
    """List the files of the repository at ``root``, new ones included and ignored ones left out."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted({name for name in listed if (root / name).is_file()})


def broken_links(root: Path, files: list[str]) -> Iterator[str]:
    """Yield a line for each relative link of a page that leads to no file, or to no heading of a page."""
    for name in files:
        if not name.endswith(".md"):
            continue
        page = root / name
        text = CODE_SPAN.sub("", FENCE.sub(lambda match: "\n" * match[0].count("\n"), page.read_text(encoding="utf-8")))
        for match in LINK.finditer(text):
            target = match[1] or match[2]
            if re.match(r"[a-z][a-z0-9+.-]*:|//", target, re.IGNORECASE):
                continue
            if not _resolves(page, unquote(target), root):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{name}:{line}: the link {target} leads nowhere"


def _resolves(page: Path, target: str, root: Path) -> bool:
    path, _, anchor = target.partition("#")
    found = page if not path else (root / path.lstrip("/") if path.startswith("/") else page.parent / path)
    if not found.exists():
        return False
    return not anchor or found.suffix != ".md" or anchor.lower() in _anchors(found.read_text(encoding="utf-8"))


def _anchors(text: str) -> set[str]:
    """Return the anchors that the headings of a page get; a repeated heading gets a number."""
    anchors: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        base = re.sub(r"[^\w\- ]", "", words.lower()).strip().replace(" ", "-")
        anchor, count = base, 0
        while anchor in anchors:
            count += 1
            anchor = f"{base}-{count}"
        anchors.add(anchor)
    return anchors


def false_clean_claims(root: Path) -> Iterator[str]:
    """Yield a line for each file that the page lists as CLEAN and that imports the project or Django, or does not exist."""
    page = root / CLEAN_PAGE
    if not page.exists():
        return
    for line in page.read_text(encoding="utf-8").splitlines():
        if not re.search(r"\bCLEAN\b", line):
            continue
        for name in PYTHON_PATH.findall(line):
            if not (root / name).is_file():
                yield f"{CLEAN_PAGE}: {name} is listed as CLEAN and does not exist"
                continue
            for module in sorted(_imported_packages(root / name) & NOT_CLEAN):
                yield f"{CLEAN_PAGE}: {name} is listed as CLEAN and imports {module}"


def _imported_packages(path: Path) -> set[str]:
    """Return the top-level packages that a file imports anywhere, a relative import counting as the project's."""
    packages: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            packages.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            packages.add("cardpicker" if node.level else (node.module or "").split(".")[0])
    return packages


def oversized(root: Path, files: list[str]) -> Iterator[str]:
    """Yield a line for each Python file that must be split."""
    for name, lines in _python_sizes(root, files):
        if lines > MOST_LINES:
            yield f"{name}: {lines} lines; split it by what its parts know (at most {MOST_LINES})"


def size_warnings(root: Path, files: list[str]) -> Iterator[str]:
    """Yield a line for each Python file that is longer than wanted."""
    for name, lines in _python_sizes(root, files):
        if WANTED_LINES < lines <= MOST_LINES:
            yield f"{name} has {lines} lines; {WANTED_LINES} are wanted at most"


def _python_sizes(root: Path, files: list[str]) -> Iterator[tuple[str, int]]:
    for name in files:
        if name.endswith(".py") and "/migrations/" not in name:
            yield name, (root / name).read_text(encoding="utf-8").count("\n")


if __name__ == "__main__":
    sys.exit(main())
