"""Which illustrations have no hash yet, and storing what became of hashing them. No fetch, no pixels.

An illustration is hashed once, whatever number of printings bear it; one that Scryfall does not name stands for its
printing alone. What failed for good is asked again only at an address that has not been tried.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction

from cardpicker.catalogue.art_kind import ART_HASH_KIND
from cardpicker.catalogue.version import raise_version
from cardpicker.models import ArtOutcome

#: Transient failures after which an illustration is left alone until it is asked for.
MAX_ATTEMPTS: Final = 5
#: Hours until a transient failure is tried again; each one triples them.
FIRST_WAIT_H: Final = 1

#: Key of a session-level advisory lock in PostgreSQL's one-number key space.
_LOCK_KEY: Final = 0x43_61_72_64_41_72_74

_SCOPED: Final = """
    SELECT COALESCE(printing.illustration_id, printing.identifier) AS key, printing.identifier, printing.image_uri,
           printing.language, printing.released_at
    FROM cardpicker_canonicalcard AS printing
    JOIN cardpicker_canonicalexpansion AS expansion ON expansion.id = printing.expansion_id
    WHERE %(sets)s::text[] IS NULL OR expansion.code = ANY(%(sets)s::text[])
"""
# The sample is drawn by the keys alone, so that a run that resumes has the same one.
_SAMPLED: Final = f"""
    scoped AS MATERIALIZED ({_SCOPED}),
    wanted AS (SELECT key FROM scoped GROUP BY key ORDER BY md5(key::text) LIMIT %(sample)s)
"""
_IS_DUE: Final = """
    art.key IS NULL OR art.kind <> %(kind)s
    OR CASE WHEN art.outcome = 'FAILED'
            THEN %(retry)s OR (art.attempts < %(max_attempts)s AND art.tried_at
                 < %(now)s - make_interval(hours => (%(first_wait_h)s * 3 ^ (GREATEST(art.attempts, 1) - 1))::int))
            WHEN art.outcome IN ('GONE', 'UNUSABLE', 'NO_PICTURE')
            THEN %(retry)s OR (scoped.image_uri <> '' AND scoped.image_uri <> ALL(art.tried_uris))
            ELSE false END
"""
_DUE: Final = f"""
    WITH {_SAMPLED}
    SELECT DISTINCT ON (md5(key::text), key) key, identifier, image_uri
    FROM scoped JOIN wanted USING (key) LEFT JOIN cardpicker_canonicalart AS art USING (key)
    WHERE {_IS_DUE}
    ORDER BY md5(key::text), key, image_uri <> '' DESC, image_uri <> ALL(COALESCE(art.tried_uris, '{{}}')) DESC,
             language = 'en' DESC, released_at DESC NULLS LAST, identifier
"""
_STATES: Final = f"""
    WITH {_SAMPLED}
    SELECT COALESCE(CASE WHEN art.kind = %(kind)s THEN art.outcome END, ''), count(*)
    FROM wanted LEFT JOIN cardpicker_canonicalart AS art USING (key) GROUP BY 1
"""
_UPSERT: Final = """
    INSERT INTO cardpicker_canonicalart AS known
        (key, kind, outcome, art_hash, detail, attempts, tried_uris, tried_at)
    SELECT key, %(kind)s, outcome, art_hash, detail, (outcome = 'FAILED')::int,
           CASE WHEN outcome IN ('GONE', 'UNUSABLE') THEN ARRAY[uri] ELSE '{}' END, clock_timestamp()
    FROM json_to_recordset(%(rows)s::json)
        AS tried(key uuid, outcome text, art_hash bigint, detail text, uri varchar)
    ORDER BY key
    ON CONFLICT (key) DO UPDATE
    SET kind = excluded.kind, outcome = excluded.outcome, art_hash = excluded.art_hash, detail = excluded.detail,
        tried_at = excluded.tried_at,
        attempts = CASE WHEN excluded.outcome = 'FAILED' THEN known.attempts + 1 ELSE 0 END,
        tried_uris = CASE WHEN excluded.outcome IN ('GONE', 'UNUSABLE') AND NOT known.tried_uris @> excluded.tried_uris
                          THEN known.tried_uris || excluded.tried_uris
                          WHEN excluded.outcome = 'HASHED' THEN '{}' ELSE known.tried_uris END
"""
_BEARERS: Final = """
    SELECT printing.id, printing.name_keys, art.art_hash
    FROM unnest(%(keys)s::uuid[]) AS asked(key) JOIN cardpicker_canonicalart AS art USING (key)
    JOIN cardpicker_canonicalcard AS printing
      ON printing.illustration_id = art.key OR (printing.identifier = art.key AND printing.illustration_id IS NULL)
    WHERE printing.art_hash IS DISTINCT FROM art.art_hash
    ORDER BY printing.id FOR NO KEY UPDATE OF printing
"""
_SHARE: Final = """
    UPDATE cardpicker_canonicalcard AS printing SET art_hash = changed.art_hash
    FROM unnest(%s::bigint[], %s::bigint[]) AS changed(id, art_hash) WHERE printing.id = changed.id
"""
_FORGET: Final = """
    UPDATE cardpicker_canonicalcard SET art_hash = NULL
    WHERE id IN (
        SELECT printing.id FROM cardpicker_canonicalcard AS printing
        JOIN cardpicker_canonicalart AS art ON art.key = COALESCE(printing.illustration_id, printing.identifier)
        WHERE printing.art_hash IS NOT NULL AND art.kind <> %s
        ORDER BY printing.id FOR NO KEY UPDATE OF printing
    )
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtScope:
    """Which illustrations are meant."""

    sets: tuple[str, ...] = ()  #: Set codes, lower case; none: every set.
    sample: int | None = None  #: So many of them, always the same.
    retry: bool = False  #: Also those that failed, for good or too often.

    def parameters(self, now: datetime) -> dict[str, Any]:
        """Return what the queries want to know."""
        return {
            "sets": list(self.sets) or None,
            "sample": self.sample,
            "retry": self.retry,
            "kind": ART_HASH_KIND,
            "max_attempts": MAX_ATTEMPTS,
            "first_wait_h": FIRST_WAIT_H,
            "now": now,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DueArt:
    """An illustration to hash, and the printing that it is looked at on."""

    key: uuid.UUID
    printing: uuid.UUID
    image_uri: str  #: As imported; empty: there is no picture.


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedArt:
    """What became of one illustration."""

    due: DueArt
    outcome: ArtOutcome
    art_hash: int | None = None  #: Signed; set exactly where hashed.
    detail: str = ""


def due_art(scope: ArtScope, now: datetime) -> list[DueArt]:
    """Return every illustration of ``scope`` that is to be tried, in an order that tells nothing of the sets."""
    with connection.cursor() as cursor:
        cursor.execute(_DUE, scope.parameters(now))
        return [DueArt(key=key, printing=printing, image_uri=uri) for key, printing, uri in cursor.fetchall()]


def count_art(scope: ArtScope, now: datetime) -> dict[str, int]:
    """Return how many illustrations of ``scope`` have each outcome; those never tried are under the empty word."""
    with connection.cursor() as cursor:
        cursor.execute(_STATES, scope.parameters(now))
        return dict(cursor.fetchall())


def store_art(tried: Sequence[TriedArt], on_changed: Callable[[Sequence[str]], object]) -> None:
    """Store outcomes and share the hashes over the printings.

    Args:
        on_changed: given, within the transaction, the name keys of the printings whose hash changes.
    """
    if not tried:
        return
    rows = [
        {
            "key": str(each.due.key),
            "outcome": each.outcome.value,
            "art_hash": each.art_hash,
            "detail": each.detail[:300],
            "uri": each.due.image_uri,
        }
        for each in tried
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_UPSERT, {"kind": ART_HASH_KIND, "rows": json.dumps(rows)})
        cursor.execute(_BEARERS, {"keys": [each.due.key for each in tried]})
        bearers = cursor.fetchall()
        if not bearers:
            return
        cursor.execute(_SHARE, [[pk for pk, _, _ in bearers], [value for _, _, value in bearers]])
        on_changed(sorted({key for _, keys, _ in bearers for key in keys}))
        raise_version(art=True)


def forget_other_kinds() -> int:
    """Take from the printings every hash of another kind than today's, for such hashes compare with nothing."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_FORGET, [ART_HASH_KIND])
        forgotten = int(cursor.rowcount)
        if forgotten:
            raise_version(art=True)
    return forgotten


@contextlib.contextmanager
def only_run() -> Iterator[bool]:
    """Say whether no other run is at work, and for the length of the block be the only one."""
    with connection.cursor() as cursor:
        # A session is given its own lock again, once for each time it asks: one that has it is refused.
        cursor.execute(
            "SELECT NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
            " AND (classid::bigint << 32 | objid::bigint) = %(key)s AND objsubid = 1)"
            " AND pg_try_advisory_lock(%(key)s)",
            {"key": _LOCK_KEY},
        )
        is_only = bool(cursor.fetchone()[0])
    try:
        yield is_only
    finally:
        if is_only:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK_KEY])
