"""The SQL of an import: a temporary table takes the file as it is, then only what differs reaches the catalog.

Every function belongs to one transaction, whose end drops the temporary tables. Printings are locked in primary-key
order. What the import does not know, the art hash, follows the illustration.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

from django.db import connection

from cardpicker.catalogue.bulk_record import Printing

#: One import at a time: key of a transaction-level advisory lock in PostgreSQL's one-number key space.
_LOCK_KEY = 0x43_61_72_64_49_6D_70
_MERGE_ROWS = 5_000

#: The columns that an import writes as they stand in the file.
_PLAIN = (
    "oracle_id",
    "name",
    "name_key",
    "name_keys",
    "collector_number",
    "language",
    "rarity",
    "released_at",
    "frame",
    "border_color",
    "layout",
    "promo_types",
    "illustration_id",
    "image_uri",
)
#: Those by which a printing is found and judged; of an address or a rarity no card's answer depends.
_JUDGED = (
    "name_keys",
    "collector_number",
    "language",
    "released_at",
    "frame",
    "border_color",
    "layout",
    "promo_types",
    "illustration_id",
)
_STAGED = tuple(field.name for field in fields(Printing))
_WRITTEN = (*_PLAIN, "expansion_id", "artist_id")

_COLUMNS = """
    identifier uuid, oracle_id uuid, name text, name_key text, name_keys varchar[], artist text, set_code text,
    set_name text, collector_number text, language text, rarity text, released_at date, frame text,
    border_color text, layout text, promo_types varchar[], illustration_id uuid, image_uri text, place int
"""

_EXPANSIONS = """
INSERT INTO cardpicker_canonicalexpansion AS known (code, name, released_at)
SELECT set_code,
       COALESCE((array_agg(set_name ORDER BY place DESC) FILTER (WHERE set_name <> ''))[1], upper(set_code)),
       min(released_at)
FROM scryfall_staged GROUP BY set_code ORDER BY set_code
ON CONFLICT (code) DO UPDATE
SET name = CASE WHEN excluded.name = upper(known.code) THEN known.name ELSE excluded.name END,
    released_at = LEAST(known.released_at, excluded.released_at)
WHERE (known.name <> excluded.name AND excluded.name <> upper(known.code))
   OR known.released_at IS DISTINCT FROM LEAST(known.released_at, excluded.released_at)
"""

_ARTISTS = """
INSERT INTO cardpicker_canonicalartist (name)
SELECT DISTINCT artist FROM scryfall_staged s
WHERE artist <> '' AND NOT EXISTS (SELECT 1 FROM cardpicker_canonicalartist a WHERE a.name = s.artist)
ORDER BY artist ON CONFLICT (name) DO NOTHING
"""

_DIFFERING = f"""
CREATE TEMPORARY TABLE scryfall_differing ON COMMIT DROP AS
SELECT row_number() OVER (ORDER BY p.id NULLS LAST, s.place) AS row, p.id AS printing_id, s.identifier,
       {", ".join(f"s.{column}" for column in _PLAIN)}, e.id AS expansion_id, a.id AS artist_id,
       CASE WHEN p.id IS NULL THEN s.name_keys
            WHEN ({", ".join(f"p.{column}" for column in _JUDGED)}, p.expansion_id, p.artist_id)
                 IS DISTINCT FROM ({", ".join(f"s.{column}" for column in _JUDGED)}, e.id, a.id)
            THEN s.name_keys || p.name_keys END AS touched_keys
FROM scryfall_staged s
JOIN cardpicker_canonicalexpansion e ON e.code = s.set_code
LEFT JOIN cardpicker_canonicalartist a ON a.name = s.artist
LEFT JOIN cardpicker_canonicalcard p ON p.identifier = s.identifier
WHERE p.id IS NULL
   OR ({", ".join(f"p.{column}" for column in _WRITTEN)})
      IS DISTINCT FROM ({", ".join(f"s.{column}" for column in _PLAIN)}, e.id, a.id)
"""

_LOCK_ROWS = """
SELECT id FROM cardpicker_canonicalcard
WHERE id IN (SELECT printing_id FROM scryfall_differing WHERE row > %(after)s AND row <= %(upto)s)
ORDER BY id FOR NO KEY UPDATE
"""

#: What is known of the illustration, of which another printing may have been hashed.
_ART_HASH = """
(SELECT art.art_hash FROM cardpicker_canonicalart AS art WHERE art.key = COALESCE(d.illustration_id, d.identifier))
"""

_UPDATE = f"""
UPDATE cardpicker_canonicalcard AS p
SET {", ".join(f"{column} = d.{column}" for column in _WRITTEN)},
    art_hash = CASE WHEN p.illustration_id IS DISTINCT FROM d.illustration_id THEN {_ART_HASH} ELSE p.art_hash END
FROM scryfall_differing d
WHERE p.id = d.printing_id AND d.row > %(after)s AND d.row <= %(upto)s
"""

_INSERT = f"""
INSERT INTO cardpicker_canonicalcard (identifier, {", ".join(_WRITTEN)}, art_hash)
SELECT identifier, {", ".join(_WRITTEN)}, {_ART_HASH} FROM scryfall_differing d
WHERE printing_id IS NULL AND row > %(after)s AND row <= %(upto)s ORDER BY row
ON CONFLICT (identifier) DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Rows written so far."""

    new: int
    changed: int
    done: int  #: Differing rows seen.
    total: int  #: Differing rows there are.


def take_import_lock() -> bool:
    """Take the import's lock until the transaction ends; False when another session has it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK_KEY])
        return bool(cursor.fetchone()[0])


def create_staging() -> None:
    """Create the empty staging table, for this transaction only."""
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.scryfall_staged, pg_temp.scryfall_differing")
        cursor.execute(f"CREATE TEMPORARY TABLE scryfall_staged ({_COLUMNS}) ON COMMIT DROP")


def stage(batch: Sequence[tuple[int, Printing]]) -> None:
    """Add printings with their places in the file."""
    rows = [{"place": place, **{name: getattr(printing, name) for name in _STAGED}} for place, printing in batch]
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO scryfall_staged SELECT * FROM json_to_recordset(%s::json) AS r({_COLUMNS})",
            [json.dumps(rows, ensure_ascii=False)],
        )


def drop_repeated(shown: int) -> tuple[int, list[tuple[str, list[int]]]]:
    """Keep the last of the records that share an id.

    Returns:
        How many records were dropped, and up to ``shown`` of the ids with their places in the file.
    """
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX ON scryfall_staged (identifier)")
        cursor.execute("ANALYZE scryfall_staged")
        cursor.execute(
            "SELECT identifier::text, array_agg(place ORDER BY place) FROM scryfall_staged"
            " GROUP BY identifier HAVING count(*) > 1 ORDER BY min(place) LIMIT %s",
            [shown],
        )
        repeated = list(cursor.fetchall())
        if not repeated:
            return 0, []
        cursor.execute(
            "DELETE FROM scryfall_staged s USING scryfall_staged later"
            " WHERE later.identifier = s.identifier AND later.place > s.place"
        )
        return cursor.rowcount, repeated


def touched_name_keys() -> list[str]:
    """Return, after the merge, the keys of printings that are new or are judged otherwise now, their earlier keys included."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT unnest(touched_keys) FROM scryfall_differing")
        return [key for (key,) in cursor.fetchall()]


def merge() -> Iterator[Merged]:
    """Write what differs, some thousand rows a step; yields after each, at least once."""
    with connection.cursor() as cursor:
        cursor.execute(_EXPANSIONS)
        cursor.execute(_ARTISTS)
        cursor.execute(_DIFFERING)
        total = cursor.rowcount
        cursor.execute("CREATE INDEX ON scryfall_differing (row)")
        cursor.execute("ANALYZE scryfall_differing")
        new = changed = 0
        for after in range(0, total, _MERGE_ROWS):
            upto = min(after + _MERGE_ROWS, total)
            window = {"after": after, "upto": upto}
            cursor.execute(_LOCK_ROWS, window)
            cursor.execute(_UPDATE, window)
            changed += cursor.rowcount
            cursor.execute(_INSERT, window)
            new += cursor.rowcount
            yield Merged(new=new, changed=changed, done=upto, total=total)
        if not total:
            yield Merged(new=0, changed=0, done=0, total=0)
        if new:
            cursor.execute(
                "ANALYZE cardpicker_canonicalcard, cardpicker_canonicalexpansion, cardpicker_canonicalartist"
            )
