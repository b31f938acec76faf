"""Look-ups by name key cost the same right after an import as later: their index keeps no list of pending entries."""

import django.contrib.postgres.indexes
from django.db import migrations

FORWARD = "ALTER INDEX printing_name_keys SET (fastupdate = off); SELECT gin_clean_pending_list('printing_name_keys')"
BACKWARD = "ALTER INDEX printing_name_keys RESET (fastupdate)"


class Migration(migrations.Migration):
    """One storage parameter; the index stays."""

    dependencies = [("cardpicker", "0006_vote_trail_and_bulk_runs")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(FORWARD, BACKWARD)],
            state_operations=[
                migrations.RemoveIndex(model_name="canonicalcard", name="printing_name_keys"),
                migrations.AddIndex(
                    model_name="canonicalcard",
                    index=django.contrib.postgres.indexes.GinIndex(
                        fastupdate=False, fields=["name_keys"], name="printing_name_keys"
                    ),
                ),
            ],
        )
    ]
