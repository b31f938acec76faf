"""Schedule the sync of sources: every hour somebody looks which of them are due."""

from __future__ import annotations

from typing import Any

from django.db import migrations

NAME = "sync of sources"
TASK = "cardpicker.stage_e.source_sync.scheduled_sync"
#: A listing of a large drive outlasts the time-out of a dispatch; its lock keeps a second one away meanwhile.
OPTIONS = "{'q_options': {'timeout': 3600}}"


def schedule(apps: Any, schema_editor: Any) -> None:
    Schedule = apps.get_model("django_q", "Schedule")
    Schedule.objects.update_or_create(
        name=NAME, defaults={"func": TASK, "kwargs": OPTIONS, "schedule_type": "H", "repeats": -1}
    )


def unschedule(apps: Any, schema_editor: Any) -> None:
    apps.get_model("django_q", "Schedule").objects.filter(name=NAME).delete()


class Migration(migrations.Migration):
    """One row of django-q2's schedule."""

    dependencies = [
        ("cardpicker", "0010_art_and_review_order"),
        ("django_q", "0018_task_success_index"),
    ]

    operations = [migrations.RunPython(schedule, unschedule)]
