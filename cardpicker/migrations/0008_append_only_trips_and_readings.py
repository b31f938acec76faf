"""Trips cannot be deleted by any means, and readings that change without being judged say so in the same statement."""

from __future__ import annotations

from django.db import migrations

FORWARD = """
CREATE FUNCTION cardpicker_trip_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'Envelope trips are append-only: acknowledge them instead.' USING ERRCODE = 'restrict_violation';
END $$;

CREATE TRIGGER cardpicker_trip_kept BEFORE DELETE ON cardpicker_envelopetrip
FOR EACH ROW EXECUTE FUNCTION cardpicker_trip_kept();

CREATE FUNCTION cardpicker_readings_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.judged_by := '';
    RETURN NEW;
END $$;

CREATE TRIGGER cardpicker_readings_changed BEFORE UPDATE OF readings ON cardpicker_imageevidence
FOR EACH ROW WHEN (OLD.readings IS DISTINCT FROM NEW.readings AND OLD.judged_by = NEW.judged_by AND NEW.judged_by <> '')
EXECUTE FUNCTION cardpicker_readings_changed();
"""

BACKWARD = """
DROP TRIGGER cardpicker_readings_changed ON cardpicker_imageevidence;
DROP FUNCTION cardpicker_readings_changed();
DROP TRIGGER cardpicker_trip_kept ON cardpicker_envelopetrip;
DROP FUNCTION cardpicker_trip_kept();
"""


class Migration(migrations.Migration):
    """Two triggers that hold what no code path may break."""

    dependencies = [("cardpicker", "0007_name_keys_without_pending_list")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
