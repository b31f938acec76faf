"""The ways to recognize that a sweep tries: the product's own, and each with one thing changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

#: Whatever a bottom line prints in a Latin alphabet, quotes and bullets included.
PRINTED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/.,&-'#*+•★©™"
LINE_ONLY = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/•★"
NO_DICTIONARY = dict.fromkeys(("load_system_dawg", "load_freq_dawg", "load_number_dawg", "load_punc_dawg"), "0")
HEIGHTS_PX = (20, 24, 36, 42)
CONDENSED = (1.0, 0.85, 0.55)
OWN_MODEL = "fast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way to recognize."""

    name: str
    model: str = OWN_MODEL
    oem: str = "DEFAULT"  #: A member of tesserocr's OEM.
    block_psm: str = "SINGLE_BLOCK"  #: Members of tesserocr's PSM, for several rows and for one.
    line_psm: str = "SINGLE_LINE"
    start: Mapping[str, str] = field(default_factory=dict)  #: Variables that count only while the model is loaded.
    variables: Mapping[str, str] = field(default_factory=dict)
    height_px: int | None = None  #: At which capitals are shown; None: the product's.
    condensed: float | None = None  #: The width of legal words beside a line; None: the product's.
    engine: str = "tesserocr"


def ways(models: Sequence[str], patterns: Path) -> list[Way]:
    """Return the product's way first, then one change at a time; ``models`` beside the product's own are whole ways."""
    base = Way(name="as the product")
    found = [base]
    found += [replace(base, name=f"model {model}", model=model) for model in models]
    for model in models:
        for oem in ("TESSERACT_ONLY", "TESSERACT_LSTM_COMBINED"):
            found.append(replace(base, name=f"model {model}, {oem.lower()}", model=model, oem=oem))
    found += [
        replace(base, name="PSM column (4)", block_psm="SINGLE_COLUMN"),
        replace(base, name="PSM auto (3)", block_psm="AUTO"),
        replace(base, name="PSM sparse (11)", block_psm="SPARSE_TEXT"),
        replace(base, name="PSM raw line (13) for one row", line_psm="RAW_LINE"),
        replace(base, name="PSM block (6) for one row", line_psm="SINGLE_BLOCK"),
        replace(base, name="whitelist, all that is printed", variables={"tessedit_char_whitelist": PRINTED}),
        replace(base, name="whitelist, capitals and digits", variables={"tessedit_char_whitelist": LINE_ONLY}),
        replace(
            base, name="blacklist of what is never printed", variables={"tessedit_char_blacklist": "{}[]|~^`\\<>=_"}
        ),
        replace(base, name="dictionaries off", start=NO_DICTIONARY),
        replace(base, name="user patterns", start={"user_patterns_file": str(patterns)}),
        replace(base, name="inverse tried too", variables={"tessedit_do_invert": "1"}),
    ]
    found += [replace(base, name=f"capitals {height} px", height_px=height) for height in HEIGHTS_PX]
    found += [replace(base, name=f"legal words at {width:g} of their width", condensed=width) for width in CONDENSED]
    found.append(replace(base, name="pytesseract", engine="pytesseract"))
    return found


def write_patterns(path: Path) -> None:
    """Write the shapes of a collector number, for engines that heed them."""
    path.write_text(
        "\\d\\d\\d/\\d\\d\\d\n\\d\\d/\\d\\d\\d\n\\d/\\d\\d\\d\n\\A \\d\\d\\d\\d\n\\A\\A\\A\n", encoding="utf-8"
    )
