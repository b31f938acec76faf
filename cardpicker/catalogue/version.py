"""The catalog's version: by it a process knows whether what it holds of the catalog is stale."""

from __future__ import annotations

from typing import Final

from django.db import connection

from cardpicker.models import CatalogVersion

_RAISE: Final = """
INSERT INTO cardpicker_catalogversion AS known (id, printings, art) VALUES (1, %(printings)s, %(art)s)
ON CONFLICT (id) DO UPDATE SET printings = known.printings + excluded.printings, art = known.art + excluded.art
"""


def raise_version(*, printings: bool = False, art: bool = False) -> None:
    """Say that printings or their art change; last in the transaction that changes them, for rivals wait for its end."""
    with connection.cursor() as cursor:
        cursor.execute(_RAISE, {"printings": int(printings), "art": int(art)})


def read_version() -> tuple[int, int]:
    """Return how often the printings and the art have changed."""
    return CatalogVersion.objects.values_list("printings", "art").first() or (0, 0)
