"""Schedule the sweep: every five minutes, by whichever cluster runs."""

from __future__ import annotations

from typing import Any

from django.db import migrations

NAME = "stream backstop sweep"
TASK = "cardpicker.stage_e.sweep.scheduled_sweep"


def schedule(apps: Any, schema_editor: Any) -> None:
    Schedule = apps.get_model("django_q", "Schedule")
    Schedule.objects.update_or_create(
        name=NAME, defaults={"func": TASK, "schedule_type": "I", "minutes": 5, "repeats": -1}
    )


def unschedule(apps: Any, schema_editor: Any) -> None:
    apps.get_model("django_q", "Schedule").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    """One row of django-q2's schedule."""

    dependencies = [
        ("cardpicker", "0002_card_work_triggers"),
        ("django_q", "0018_task_success_index"),
    ]

    operations = [migrations.RunPython(schedule, unschedule)]
