"""Keep the source of each fetch, so that a source that is gone halts nobody else."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("cardpicker", "0012_batch_that_tried_a_card"),
    ]

    operations = [
        migrations.AddField(
            model_name="fetchoutcome",
            name="source",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="cardpicker.source",
            ),
        ),
    ]
