"""What the database itself saw: every reading stored, every judgment, every claim that ended, kept by triggers.

The product cannot tell that it did something twice; a row that was written twice looks as if it was written once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from django.db import connection

READ, JUDGED, DONE = "read", "judged", "done"

_INSTALL = """
CREATE TABLE drill_audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at timestamptz DEFAULT clock_timestamp(),
    card_id bigint NOT NULL, event text NOT NULL, version text NOT NULL
);
CREATE FUNCTION drill_evidence() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' OR NEW.updated_at IS DISTINCT FROM OLD.updated_at THEN
        INSERT INTO drill_audit (card_id, event, version)
        VALUES (NEW.card_id, 'read', NEW.image_version || '/' || NEW.manifest);
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.judged_by <> '' AND NEW.judged_by <> OLD.judged_by THEN
        INSERT INTO drill_audit (card_id, event, version)
        VALUES (NEW.card_id, 'judged', NEW.image_version || '/' || NEW.manifest);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER drill_evidence AFTER INSERT OR UPDATE ON cardpicker_imageevidence
FOR EACH ROW EXECUTE FUNCTION drill_evidence();
CREATE FUNCTION drill_work() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO drill_audit (card_id, event, version)
    SELECT NEW.card_id, 'done', card.image_version FROM cardpicker_card AS card WHERE card.id = NEW.card_id;
    RETURN NULL;
END $$;
CREATE TRIGGER drill_work AFTER UPDATE ON cardpicker_cardwork FOR EACH ROW
WHEN (OLD.lease_owner IS NOT NULL AND NEW.lease_owner IS NULL AND NEW.due_at IS NULL AND NEW.quarantined_at IS NULL)
EXECUTE FUNCTION drill_work();
"""


def install() -> None:
    """Begin to watch the drill's database."""
    with connection.cursor() as cursor:
        cursor.execute(_INSTALL)


def forget() -> None:
    """Begin anew."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE drill_audit")


def events(card_ids: Collection[int]) -> Mapping[int, Mapping[tuple[str, str], int]]:
    """Return by card how often each event was seen for each image version."""
    seen: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT card_id, event, version, count(*) FROM drill_audit WHERE card_id = ANY(%s) GROUP BY 1, 2, 3",
            [list(card_ids)],
        )
        for card_id, event, version, count in cursor.fetchall():
            seen[card_id][event, version] = count
    return seen
