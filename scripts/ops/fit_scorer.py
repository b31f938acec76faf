#!/usr/bin/env python
"""Fit the fallback's scorer: rates, temperature and threshold, with the proof on cards that it was not fitted to.

Reads what fit_scorer_cards.py wrote. Temperature and threshold come from cards whose own fold was left out of the rates;
precision and the reliability diagram from a second file of cards that nothing was fitted to. Real cases, where there are
any, count towards the rates, and are scored one by one by rates that each of them was left out of.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from cardpicker.stage_c.compute import warm_up
from cardpicker.stage_c.evidence import Lexicon
from cardpicker.stage_c.extractors.registry import manifest
from cardpicker.stage_d.fallback import judge_by_score
from cardpicker.stage_d.join_key import judge_join_key
from cardpicker.stage_d.scorer_parameters import PARAMETERS_PATH, ScorerParameters, parse_parameters
from cardpicker.stage_d.verdicts import Vote
from scripts.ops.scorer_fit.calibration import Scored, choose_threshold, mean_surprise, precision_at, scored
from scripts.ops.scorer_fit.figure import calibration_error, draw_diagram
from scripts.ops.scorer_fit.printings import load_printings
from scripts.ops.scorer_fit.rates import Counts, count, parameters_from
from scripts.ops.scorer_fit.samples import Sample, case_samples, synthetic_samples

FOLDS = 5
TEMPERATURES = (1.0, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0)  #: Surprise falls to the best one, then rises.
THRESHOLDS = (0.9, 0.93, 0.95, 0.96, 0.97, 0.975, 0.98, 0.985, 0.9875, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995)
LOWEST_THRESHOLD = 0.98  #: However few mistakes were seen: synthetic cards lack the mistakes nobody thought of.


def across_folds(samples: Sequence[Sample], cases: Counts, version: int) -> tuple[float, list[Scored]]:
    """Return the temperature under which the cards surprise least, and the cards so scored; each fold by the others."""
    folds = [[sample for i, sample in enumerate(samples) if i % FOLDS == fold] for fold in range(FOLDS)]
    counted = [count(fold) for fold in folds]
    best: tuple[float, list[Scored]] | None = None
    for temperature in TEMPERATURES:
        cards = []
        for left_out, fold in enumerate(folds):
            rates = summed([cases, *(each for i, each in enumerate(counted) if i != left_out)])
            cards += scored(fold, fitted(rates, temperature, 0.5, version))
        if best is not None and mean_surprise(cards) >= mean_surprise(best[1]):
            break
        best = temperature, cards
    assert best is not None
    return best


def summed(parts: Sequence[Counts]) -> Counts:
    """Return the sum of counts."""
    total = Counts()
    for part in parts:
        total.add(part)
    return total


def fitted(counts: Counts, temperature: float, threshold: float, version: int) -> ScorerParameters:
    """Return the parameters that counts lead to."""
    return parse_parameters(parameters_from(counts, temperature=temperature, threshold=threshold, version=version))


def judged(sample: Sample, parameters: ScorerParameters) -> str:
    """Return what join-key and the fallback make of a card: right, wrong, false positive, or abstained."""
    verdicts = judge_join_key(sample.subject), judge_by_score(sample.subject, parameters)
    vote = next(
        (verdict for verdict in verdicts if isinstance(verdict, Vote) and verdict.printing_id is not None), None
    )
    if vote is None:
        return "abstained"
    if sample.truth is None:
        return "false positive"
    return "right" if vote.printing_id == sample.truth else "wrong"


def leave_one_out(cases: Sequence[Sample], synthetic: Counts, final: ScorerParameters) -> list[str]:
    """Judge each case by rates that it was left out of; return lines to print."""
    outcomes: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    lines = []
    for place, case in enumerate(cases):
        rates = summed([synthetic, count([*cases[:place], *cases[place + 1 :]])])
        parameters = fitted(rates, final.temperature, final.threshold, final.version)
        outcome = judged(case, parameters)
        outcomes[outcome] += 1
        for card in scored([case], parameters):
            votes = card.may_vote and card.probability >= parameters.threshold
            alone["abstained" if not votes else "right" if card.right else "wrong"] += 1
            if outcome == "abstained" or card.left:
                lines.append(f"  {case.key}: {outcome}, p={card.probability:.4f} {'right' if card.right else 'wrong'}")
    return [f"with join-key: {dict(outcomes)}; the scorer alone: {dict(alone)}", *lines]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> int:
    """Fit, prove, and write the file of parameters."""
    arguments = parse_arguments()
    printings = load_printings(arguments.printings)
    fit = synthetic_samples(arguments.cards, printings)
    cases: list[Sample] = []
    if arguments.cases:
        warm_up(Lexicon(set_codes=printings.codes), "tesserocr")
        cases = list(case_samples(arguments.cases, printings))
    temperature, cards = across_folds(fit, count(cases), arguments.version)
    chosen = choose_threshold(cards, [each for each in THRESHOLDS if each >= LOWEST_THRESHOLD], arguments.wanted)
    content = parameters_from(
        summed([count(fit), count(cases)]),
        temperature=temperature,
        threshold=chosen.threshold,
        version=arguments.version,
    )
    final = parse_parameters(content)
    print(f"fitted to {len(fit)} synthetic cards and {len(cases)} cases; temperature {temperature}")
    print(f"threshold, by {FOLDS} folds: {chosen}")
    for threshold in THRESHOLDS:
        left = [card for card in cards if card.left]
        print(f"  {precision_at(cards, threshold)}; after join-key: {precision_at(left, threshold)}")
    proof: dict[str, Any] = {}
    if arguments.held_out:
        held = scored(synthetic_samples(arguments.held_out, printings), final)
        proof = prove(held, final)
        if arguments.figure:
            every = precision_at(held, final.threshold)
            caption = (
                f"{len(held)} synthetic cards with candidates that nothing was fitted to; labels: right / cards\n"
                f"threshold of a vote {final.threshold}: {every.right} of {every.votes} votes right"
            )
            draw_diagram(held, arguments.figure, caption)
    if cases:
        print("cases, each left out of its rates, " + "\n".join(leave_one_out(cases, count(fit), final)))
    content["from"] = {
        "printings_sha256": digest(arguments.printings),
        "cards": len(fit),
        "cards_sha256": digest(arguments.cards),
        "cases": len(cases),
        "stage_c_manifest": manifest(),
        "held_out": proof,
    }
    if arguments.output:
        arguments.output.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"written: {arguments.output}")
    return 0


def prove(held: Sequence[Scored], parameters: ScorerParameters) -> dict[str, Any]:
    """Print and return the precision on cards that nothing was fitted to."""
    left = [card for card in held if card.left]
    every, rest = precision_at(held, parameters.threshold), precision_at(left, parameters.threshold)
    print(f"held out, all cards: {every}")
    print(f"held out, those that join-key leaves: {rest}")
    print(f"held out, calibration error {calibration_error(held):.4f}; mean surprise {mean_surprise(held):.4f}")
    for card in held:
        if card.may_vote and not card.right and card.probability >= parameters.threshold:
            print(f"  wrong: card {card.sample.key}, {card.sample.kind}, p={card.probability:.4f}, left={card.left}")
    return {
        "cards": len(held),
        "votes": every.votes,
        "right": every.right,
        "precision_low": round(every.low, 4),
        "votes_after_join_key": rest.votes,
        "right_after_join_key": rest.right,
        "precision_low_after_join_key": round(rest.low, 4),
    }


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--printings", type=Path, required=True, help="the file that the cards were made from")
    parser.add_argument("--cards", type=Path, default=ROOT / ".local" / "scorer-cards.jsonl")
    parser.add_argument("--held-out", type=Path, help="cards of another seed, to prove it by")
    parser.add_argument("--cases", type=Path, help="folder with truth.csv and images, read anew")
    parser.add_argument("--wanted", type=float, default=0.99, help="lower end of the precision's 95%% interval")
    parser.add_argument("--version", type=int, required=True, help="of the parameters; raise it with every fit")
    parser.add_argument(
        "--output", type=Path, nargs="?", const=PARAMETERS_PATH, help="write them; default: the package"
    )
    parser.add_argument("--figure", type=Path, help="write the reliability diagram of the held-out cards")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
