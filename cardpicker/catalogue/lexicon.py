"""What the catalog knows that helps reading an image; plain values, so that any room may use them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from cardpicker.models import CanonicalCard, CanonicalExpansion


def load_lexicon() -> frozenset[str]:
    """Return every known set code, lower case.

    Token sets have their code on Scryfall only (``t2x2``); what is printed (``2X2``) is the parent set's, known too.
    """
    return frozenset(CanonicalExpansion.objects.values_list("code", flat=True))


def artists_by_name_key(keys: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the artists of the printings that each key finds, sorted; one query however many keys.

    A key that finds no printing with a known artist is absent.
    """
    wanted = frozenset(keys) - {""}
    if not wanted:
        return {}
    rows = (
        CanonicalCard.objects.filter(name_keys__overlap=sorted(wanted), artist__isnull=False)
        .order_by()
        .values_list("name_keys", "artist__name")
        .distinct()
    )
    found: dict[str, set[str]] = defaultdict(set)
    # Not by a cursor on the server: for one, the planner takes only the first rows to be wanted, and reads the whole table.
    for name_keys, artist in rows:
        for key in wanted.intersection(name_keys):
            found[key].add(artist)
    return {key: tuple(sorted(artists)) for key, artists in found.items()}
