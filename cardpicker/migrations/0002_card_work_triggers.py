"""Whatever makes a card due is written by the database in the same transaction, also under bulk_create and update."""

from __future__ import annotations

from django.db import migrations

FORWARD = """
CREATE FUNCTION cardpicker_card_inserted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cardpicker_cardwork (card_id, due_at, reason, attempts, last_outcome, last_detail)
    SELECT id, CASE WHEN removed_at IS NULL THEN now() END, 'created', 0, '', ''
    FROM new_rows ORDER BY id
    ON CONFLICT (card_id) DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER cardpicker_card_inserted AFTER INSERT ON cardpicker_card
REFERENCING NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION cardpicker_card_inserted();

CREATE FUNCTION cardpicker_card_updated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cardpicker_cardwork AS work (card_id, due_at, reason, attempts, last_outcome, last_detail)
    SELECT n.id, now(),
           CASE WHEN n.image_version <> o.image_version THEN 'image-changed'
                WHEN o.removed_at IS NOT NULL THEN 'returned'
                ELSE 'card-changed' END,
           0, '', ''
    FROM new_rows n JOIN old_rows o ON o.id = n.id
    WHERE n.removed_at IS NULL
      AND (n.image_version <> o.image_version OR n.name_key <> o.name_key
           OR n.card_type <> o.card_type OR o.removed_at IS NOT NULL)
    ORDER BY n.id
    ON CONFLICT (card_id) DO UPDATE
    SET due_at = LEAST(work.due_at, excluded.due_at), reason = excluded.reason, attempts = 0, quarantined_at = NULL;

    UPDATE cardpicker_cardwork SET due_at = NULL
    WHERE due_at IS NOT NULL
      AND card_id IN (SELECT n.id FROM new_rows n JOIN old_rows o ON o.id = n.id
                      WHERE n.removed_at IS NOT NULL AND o.removed_at IS NULL);
    RETURN NULL;
END $$;

CREATE TRIGGER cardpicker_card_updated AFTER UPDATE ON cardpicker_card
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION cardpicker_card_updated();

INSERT INTO cardpicker_cardwork (card_id, due_at, reason, attempts, last_outcome, last_detail)
SELECT id, now(), 'created', 0, '', '' FROM cardpicker_card WHERE removed_at IS NULL
ON CONFLICT (card_id) DO NOTHING;
"""

BACKWARD = """
DROP TRIGGER cardpicker_card_updated ON cardpicker_card;
DROP FUNCTION cardpicker_card_updated();
DROP TRIGGER cardpicker_card_inserted ON cardpicker_card;
DROP FUNCTION cardpicker_card_inserted();
"""


class Migration(migrations.Migration):
    """The two statement-level triggers that keep CardWork true to Card."""

    dependencies = [("cardpicker", "0001_initial")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
