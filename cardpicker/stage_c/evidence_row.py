"""The statement that locks a card and stores its evidence, written out: for each card it costs less to run than to compose."""

from __future__ import annotations

from django.db import connection

from cardpicker.models import ImageEvidence
from cardpicker.stage_c.outcomes import CardGone
from cardpicker.stage_c.storable import json_text

_JSON = ("extractor_versions", "readings")
_PLAIN = (
    *("image_version", "image_sha256", "manifest", "rendition", "width_px", "height_px", "set_code"),
    *("collector_number", "art_hash", "elapsed_ms", "run_id", "transferred_from_id", "judged_by"),
)
_COLUMNS = (*_PLAIN, *_JSON)

# The card as it is once it is locked decides, not as it was when the statement began.
_STORE = f"""
WITH card AS MATERIALIZED (
    SELECT id, image_version, removed_at FROM cardpicker_card WHERE id = %(card_id)s FOR NO KEY UPDATE
), stored AS (
    INSERT INTO cardpicker_imageevidence (card_id, updated_at, {", ".join(_COLUMNS)})
    SELECT id, statement_timestamp(), {", ".join(f"%({column})s" for column in _COLUMNS)}
    FROM card WHERE image_version = %(image_version)s AND removed_at IS NULL
    ON CONFLICT (card_id) DO UPDATE SET
        updated_at = EXCLUDED.updated_at, {", ".join(f"{column} = EXCLUDED.{column}" for column in _COLUMNS)}
)
SELECT image_version, removed_at IS NOT NULL FROM card
"""


def store_evidence(row: ImageEvidence) -> CardGone | None:
    """Lock the row's card, and put the row in place of what is stored of it, without a signal.

    Returns:
        None when it is stored; nothing is stored of a card that is gone, or whose image is another.
    """
    values = {column: getattr(row, column) for column in _PLAIN}
    values |= {column: json_text(getattr(row, column)) for column in _JSON}
    with connection.cursor() as cursor:
        cursor.execute(_STORE, {"card_id": row.card_id, **values})
        return _gone(cursor.fetchone(), row.image_version)


def _gone(found: tuple[str, bool] | None, image_version: str) -> CardGone | None:
    if found is None:
        return CardGone(detail="deleted in flight")
    present_version, is_removed = found
    if is_removed:
        return CardGone(detail="removed from its source in flight")
    if present_version != image_version:
        return CardGone(detail="image replaced in flight")
    return None
