#!/usr/bin/env python
"""Synthetic cards for the fit of the fallback's scorer: drawn, spoiled and read by the real Stage C; a JSON line each.

The same seed, printings and Stage C give the same lines. Slow (some five cards a second and core); fit_scorer.py then
reads the file as often as it likes.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from cardpicker.stage_c.compute import warm_up
from cardpicker.stage_c.evidence import Lexicon
from scripts.ops.scorer_fit.printings import load_printings
from scripts.ops.scorer_fit.rendering import clean_art_hash, draw_picture, read, spoil
from scripts.ops.scorer_fit.scenarios import Deck, draw_scenario, make_deck


@functools.cache
def ready_deck(path: str) -> Deck:
    """Return the deck of this process, once its reader is ready."""
    printings = load_printings(Path(path))
    warm_up(Lexicon(set_codes=printings.codes), "tesserocr")
    return make_deck(printings)


def make_card(path: str, seed: int, number: int) -> dict[str, Any]:
    """Return one card: what is true of it, and what was read."""
    deck, draw = ready_deck(path), random.Random(f"{seed}-{number}")
    scenario = draw_scenario(deck, draw)
    rows = deck.printings.rows
    shown = rows[scenario.art_of].illustration_id if scenario.art_of is not None else None
    picture = draw_picture(scenario, shown or f"{seed}-{number}")
    return {
        "number": number,
        "kind": scenario.kind.value,
        "style": scenario.style.value,
        "name": scenario.name,
        "truth": rows[scenario.truth].identifier if scenario.truth is not None else None,
        "hidden": [rows[place].identifier for place in scenario.hidden],
        "illustration": shown,
        "art_hash": clean_art_hash(picture) if shown else None,
        "readings": read(spoil(picture, draw), deck.printings.artists(scenario.name)),
    }


def main() -> int:
    """Write the cards in order."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--printings", type=Path, required=True, help="Scryfall's objects, a JSON line each, gzip or not"
    )
    parser.add_argument("--output", type=Path, default=ROOT / ".local" / "scorer-cards.jsonl")
    parser.add_argument("--cards", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    make = functools.partial(make_card, str(arguments.printings), arguments.seed)
    with ProcessPoolExecutor(arguments.processes) as pool, arguments.output.open("w", encoding="utf-8") as out:
        for card in pool.map(make, range(arguments.cards), chunksize=20):
            out.write(json.dumps(card, ensure_ascii=False) + "\n")
            if card["number"] % 500 == 499:
                print(f"{card['number'] + 1} cards", file=sys.stderr, flush=True)
    print(f"{arguments.cards} cards in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
