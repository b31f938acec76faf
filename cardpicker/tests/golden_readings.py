"""Readings of fixed pictures, as one table: text and numbers of the sample catalog and of drawn cards.

``python -m cardpicker.tests.golden_readings`` writes the table anew. Raise the version of every extractor whose readings
changed in the same commit: the test compares versions and readings extractor by extractor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from cardpicker.stage_c.compute import compute_card_evidence, warm_up
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext, JSONValue, Lexicon, Reading
from cardpicker.stage_c.extractors.registry import extractor_versions
from cardpicker.tests.card_pictures import card, encode

TABLE = Path(__file__).parent / "golden_readings.jsonl"
SAMPLES = Path(__file__).resolve().parents[2] / "sample_catalogue"
CONTEXT = ComputeContext(artists=("John Avon", "Kev Walker", "Mathias Kollros"))
#: Belief and sharpness wobble with the rounding of a processor's vector units; what was read does not.
UNSTABLE = frozenset({"confidence", "word_confidence", "ratio", "sharpness", "detail", "set_code_confidence", "engine"})
Table = dict[str, dict[str, JSONValue]]


def pictures() -> dict[str, bytes]:
    """Return the pictures by name: every third sample, and drawn cards of each layout and place."""
    samples = sorted((SAMPLES / "images").iterdir())[::3]
    drawn = {
        "drawn modern": card(),
        "drawn bleed": card(bleed_mm=3.175),
        "drawn 2023": card(((4.0, 83.8, "R 0123"), (4.0, 85.6, "MKM * EN"))),
        "drawn footer": card(((20.0, 81.9, "Illus. John Avon"), (24.0, 83.9, "226/276 - WOE"))),
        "drawn legal": card(((4.0, 82.0, "Kev Walker"), (4.0, 84.0, "© 1993-2011 Wizards of the Coast LLC 182/249"))),
        "drawn sideways": card().rotate(90, expand=True),
        "drawn leaning": card(bleed_mm=3.175).rotate(2),
        "drawn blank line": card(()),
    }
    return {path.name: path.read_bytes() for path in samples} | {
        name: encode(picture) for name, picture in drawn.items()
    }


def read_all() -> Table:
    """Return the stable part of every reading, by extractor and picture."""
    codes = frozenset(
        str(json.loads(line)["set"]) for line in (SAMPLES / "printings.jsonl").read_text().splitlines() if line
    )
    warm_up(Lexicon(set_codes=codes | {"mkm", "woe"}), "tesserocr")
    table: Table = {name: {} for name in extractor_versions()}
    for name, image in pictures().items():
        found = compute_card_evidence(image, CONTEXT)
        for extractor, reading in found.readings.items() if isinstance(found, CardEvidence) else ():
            table[extractor][name] = json.loads(json.dumps(stable(reading)))
    return table


def stable(reading: JSONValue | Reading) -> JSONValue:
    """Return ``reading`` without what a processor may round otherwise, and its lengths to a tenth."""
    if isinstance(reading, Mapping):
        return {key: stable(value) for key, value in reading.items() if key not in UNSTABLE}
    if isinstance(reading, list):
        return [stable(value) for value in reading]
    return round(reading, 1) if isinstance(reading, float) else reading


def load() -> tuple[dict[str, int], Table]:
    """Return the stored versions and readings; the table has one reading a line."""
    versions: dict[str, int] = {}
    readings: Table = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines() if TABLE.is_file() else ():
        entry = json.loads(line)
        versions[entry["extractor"]] = entry["version"]
        readings.setdefault(entry["extractor"], {})[entry["picture"]] = entry["reading"]
    return versions, readings


def changed(before: Mapping[str, JSONValue], now: Mapping[str, JSONValue]) -> list[str]:
    """Return the pictures that both have and that read otherwise."""
    return [picture for picture, reading in now.items() if picture in before and before[picture] != reading]


def dishonest(old: Table, new: Table, unraised: Collection[str]) -> list[str]:
    """Return the extractors of ``unraised`` version that read the same pictures otherwise."""
    return [name for name in unraised if changed(old.get(name, {}), new[name])]


def main() -> int:
    """Write the table, unless an extractor changed without its version."""
    fresh, versions = read_all(), extractor_versions()
    old_versions, old = load()
    liars = dishonest(old, fresh, [name for name, version in versions.items() if old_versions.get(name) == version])
    if liars:
        print(f"raise the version of {', '.join(liars)} in extractors/registry.py first")
        return 1
    lines = [
        json.dumps(
            {"extractor": name, "version": versions[name], "picture": picture, "reading": reading}, ensure_ascii=False
        )
        for name, readings in fresh.items()
        for picture, reading in readings.items()
    ]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
