"""What a way reads on the cases: number and set code right, wrong or blank, and what a card costs."""

from __future__ import annotations

import io
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import mean, median

from PIL import Image

from cardpicker.catalogue.name_key import name_keys
from cardpicker.stage_c.compute import compute_card_evidence
from cardpicker.stage_c.evidence import CardEvidence, ComputeContext
from scripts.ops.bench_reading import judge, read_fields, truths

VERDICTS = ("right", "wrong", "blank")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One image with what is printed on it."""

    file: str
    body: bytes
    printed: Mapping[str, str]
    context: ComputeContext


@dataclass(slots=True, kw_only=True)
class Score:
    """One way's figures."""

    number: Counter[str] = field(default_factory=Counter)
    set: Counter[str] = field(default_factory=Counter)
    pairs: int = 0  #: Cards on which number and set code are both right.
    invented: int = 0  #: Numbers where none is printed.
    years: int = 0  #: Cards whose copyright year was read, right or wrong.
    cpu_s: list[float] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    read: dict[str, Mapping[str, str]] = field(default_factory=dict)  #: By file.

    def figures(self) -> dict[str, object]:
        """Return the figures by the names that they have in JSON."""
        return {
            "number": {verdict: self.number[verdict] for verdict in VERDICTS},
            "set": {verdict: self.set[verdict] for verdict in VERDICTS},
            "pairs_right": self.pairs,
            "numbers_invented": self.invented,
            "years_read": self.years,
            "cpu_ms_median": round(1000 * median(self.cpu_s), 1),
            "cpu_ms_mean": round(1000 * mean(self.cpu_s), 1),
            "calls_mean": round(mean(self.calls), 2),
        }


def read_cases(images: Path, rows: Sequence[Mapping[str, str]], artists: Mapping[str, set[str]]) -> list[Case]:
    """Return the cases whose images are there."""
    cases = []
    for row in rows:
        path = images / row["file"]
        if path.is_file():
            known = sorted({name for key in name_keys(row.get("name", "")) for name in artists.get(key, ())})
            context = ComputeContext(artists=tuple(known))
            cases.append(Case(file=path.name, body=path.read_bytes(), printed=truths(row), context=context))
    return cases


def smaller(case: Case, scale: float) -> Case:
    """Return the case at another size, as a source that sends smaller files would have it."""
    with Image.open(io.BytesIO(case.body)) as picture:
        size = (round(picture.width * scale), round(picture.height * scale))
        out = io.BytesIO()
        picture.convert("RGB").resize(size, Image.Resampling.LANCZOS).save(out, "JPEG", quality=90)
    return replace(case, file=f"{case.file} at {scale:g}", body=out.getvalue())


def score(cases: Sequence[Case]) -> Score:
    """Read every case with the engine that is in use."""
    found = Score()
    for case in cases:
        before = _cpu_s()
        evidence = compute_card_evidence(case.body, case.context)
        found.cpu_s.append(_cpu_s() - before)
        readings = evidence.readings if isinstance(evidence, CardEvidence) else {}
        calls = readings.get("bottom_text", {}).get("ocr_calls")
        found.calls.append(calls if isinstance(calls, int) else 0)
        read = {name: text for name, text in read_fields(readings).items() if name in ("number", "set")}
        found.read[case.file] = read
        verdicts = {
            name: judge(name, read.get(name), case.printed[name]) for name in ("number", "set") if name in case.printed
        }
        found.number.update(verdict for name, verdict in verdicts.items() if name == "number")
        found.set.update(verdict for name, verdict in verdicts.items() if name == "set")
        found.pairs += len(verdicts) == 2 and set(verdicts.values()) == {"right"}
        found.invented += "number" in read and "number" not in case.printed
        found.years += readings.get("legal_line", {}).get("copyright_year") is not None
    return found


def _cpu_s() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system
