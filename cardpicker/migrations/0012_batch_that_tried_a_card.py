"""Keep with each card the batch that tried it last, so that a run leads to the cards it failed on."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("cardpicker", "0011_schedule_source_sync"),
    ]

    operations = [
        migrations.AddField(
            model_name="cardwork",
            name="last_batch",
            field=models.UUIDField(blank=True, help_text="The batch that tried the card last.", null=True),
        ),
        migrations.AddIndex(
            model_name="cardwork",
            index=models.Index(
                condition=models.Q(("last_batch__isnull", False)), fields=["last_batch"], name="work_last_batch"
            ),
        ),
    ]
