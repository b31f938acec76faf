"""Votes leave a trail, written by the database whoever changes them; bulk commands remember where they are."""

import django.db.models.deletion
import django.db.models.functions.datetime
from django.db import migrations, models

FORWARD = """
CREATE FUNCTION cardpicker_vote_replaced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cardpicker_supersededvote
        (card_id, printing_id, is_no_match, anonymous_id, source, confidence, evidence, image_version, run_id,
         cast_at, change, changed_by_run_id, superseded_at)
    SELECT o.card_id, o.printing_id, o.is_no_match, o.anonymous_id, o.source, o.confidence, o.evidence,
           o.image_version, o.run_id, o.updated_at, 'REPLACED', n.run_id, clock_timestamp()
    FROM old_rows o JOIN new_rows n ON n.id = o.id
    WHERE (o.printing_id, o.is_no_match, o.source, o.confidence, o.evidence, o.image_version)
          IS DISTINCT FROM (n.printing_id, n.is_no_match, n.source, n.confidence, n.evidence, n.image_version)
    ORDER BY o.id;
    RETURN NULL;
END $$;

CREATE TRIGGER cardpicker_vote_replaced AFTER UPDATE ON cardpicker_cardprintingtag
REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
FOR EACH STATEMENT EXECUTE FUNCTION cardpicker_vote_replaced();

-- Who deletes says why in two settings of the transaction; who says nothing has DELETED them.
CREATE FUNCTION cardpicker_vote_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO cardpicker_supersededvote
        (card_id, printing_id, is_no_match, anonymous_id, source, confidence, evidence, image_version, run_id,
         cast_at, change, changed_by_run_id, superseded_at)
    SELECT o.card_id, o.printing_id, o.is_no_match, o.anonymous_id, o.source, o.confidence, o.evidence,
           o.image_version, o.run_id, o.updated_at,
           COALESCE(NULLIF(current_setting('cardpicker.vote_change', true), ''), 'DELETED'),
           COALESCE(current_setting('cardpicker.vote_change_run', true), ''), clock_timestamp()
    FROM old_rows o ORDER BY o.id;
    RETURN NULL;
END $$;

CREATE TRIGGER cardpicker_vote_deleted AFTER DELETE ON cardpicker_cardprintingtag
REFERENCING OLD TABLE AS old_rows
FOR EACH STATEMENT EXECUTE FUNCTION cardpicker_vote_deleted();
"""

BACKWARD = """
DROP TRIGGER cardpicker_vote_deleted ON cardpicker_cardprintingtag;
DROP FUNCTION cardpicker_vote_deleted();
DROP TRIGGER cardpicker_vote_replaced ON cardpicker_cardprintingtag;
DROP FUNCTION cardpicker_vote_replaced();
"""


class Migration(migrations.Migration):

    dependencies = [
        ("cardpicker", "0005_fetch_pressure_and_listing_state"),
    ]

    operations = [
        migrations.AddField(
            model_name="cardprintingtag",
            name="image_version",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The image that the vote is about: it counts while the card has it. Empty: whichever the card has.",
                max_length=100,
            ),
        ),
        migrations.CreateModel(
            name="BulkRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("run_id", models.CharField(max_length=64, unique=True)),
                ("command", models.CharField(max_length=50)),
                (
                    "scope",
                    models.CharField(
                        help_text="Which cards, in words; a dry run vouches for its own scope only.", max_length=500
                    ),
                ),
                ("writes", models.BooleanField(help_text="Whether what it did was kept.")),
                (
                    "override_note",
                    models.CharField(blank=True, help_text="Why it wrote without a dry run.", max_length=500),
                ),
                (
                    "last_card_id",
                    models.BigIntegerField(default=0, help_text="Every card up to this one has been taken."),
                ),
                ("cards_done", models.PositiveBigIntegerField(default=0)),
                ("counts", models.JSONField(default=dict)),
                (
                    "started_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), editable=False),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-started_at"],
                "indexes": [models.Index(fields=["command", "scope", "-finished_at"], name="bulk_run_scope")],
            },
        ),
        migrations.CreateModel(
            name="SupersededVote",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("is_no_match", models.BooleanField()),
                ("anonymous_id", models.CharField(max_length=64)),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("USER", "User"),
                            ("ADMIN", "Admin"),
                            ("OCR", "Machine, read"),
                            ("DEDUCTION", "Machine, deduced"),
                        ],
                        max_length=10,
                    ),
                ),
                ("confidence", models.FloatField(null=True)),
                ("evidence", models.JSONField(default=dict)),
                ("image_version", models.CharField(blank=True, max_length=100)),
                (
                    "run_id",
                    models.CharField(blank=True, db_index=True, help_text="The run that had cast it.", max_length=64),
                ),
                ("cast_at", models.DateTimeField()),
                (
                    "change",
                    models.CharField(
                        choices=[
                            ("REPLACED", "The voter votes otherwise"),
                            ("WITHDRAWN", "The calculator says nothing any more"),
                            ("RETRACTED", "The person took it back"),
                            ("RUN_RETRACTED", "An operator retracted the run"),
                            ("PURGED", "An operator purged machine votes"),
                            ("DELETED", "Deleted by other means"),
                        ],
                        max_length=15,
                    ),
                ),
                ("changed_by_run_id", models.CharField(blank=True, help_text="The run that ended it.", max_length=64)),
                ("superseded_at", models.DateTimeField()),
                (
                    "card",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="superseded_votes",
                        to="cardpicker.card",
                    ),
                ),
                (
                    "printing",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="cardpicker.canonicalcard",
                    ),
                ),
            ],
            options={
                "verbose_name": "superseded vote",
                "ordering": ["-pk"],
            },
        ),
        migrations.RunSQL(FORWARD, BACKWARD),
    ]
