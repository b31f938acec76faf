"""What a process holds of the whole catalog: its names and its art, loaded when first asked for.

One of each at most, and replaced when the catalog has changed; asking costs one small query.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from django.db import connection

from cardpicker.stage_d.art_index import ArtIndex
from cardpicker.stage_d.name_index import NameIndex

Version = tuple[str, int, int]  #: Database, changes counted, and the latest key, for rows that came by other ways.

_VERSION: Final = """
    SELECT current_database(), COALESCE(max(version.{counter}), 0),
           COALESCE((SELECT max(id) FROM {table}), 0)
    FROM cardpicker_catalogversion AS version
"""
_NAMES: Final = """
    SELECT key, min(printing.name) FROM cardpicker_canonicalcard AS printing, unnest(printing.name_keys) AS key
    GROUP BY key
"""
_ART: Final = "SELECT id, art_hash FROM cardpicker_canonicalart WHERE art_hash IS NOT NULL AND kind = %s"


def name_index() -> NameIndex:
    """Return the names of the catalog as it is now."""
    return _names(_version("printings", "cardpicker_canonicalcard"))


def art_index(kind: str) -> ArtIndex:
    """Return the art of the catalog as it is now: hashes of ``kind`` by the key of their row."""
    return _art(_version("art", "cardpicker_canonicalart"), kind)


def _version(counter: str, table: str) -> Version:
    with connection.cursor() as cursor:
        cursor.execute(_VERSION.format(counter=counter, table=table))
        database, changes, latest = cursor.fetchone()
    return database, changes, latest


@lru_cache(maxsize=1)
def _names(version: Version) -> NameIndex:
    with connection.cursor() as cursor:
        cursor.execute(_NAMES)
        return NameIndex(dict(cursor.fetchall()))


@lru_cache(maxsize=1)
def _art(version: Version, kind: str) -> ArtIndex:
    with connection.cursor() as cursor:
        cursor.execute(_ART, [kind])
        rows = cursor.fetchall()
    return ArtIndex([pk for pk, _ in rows], [value for _, value in rows])
