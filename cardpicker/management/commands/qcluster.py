"""Start the workers, once the checks that need the database have passed too, under a sentinel that cannot be wedged."""

from __future__ import annotations

from typing import Any

from django.core.checks import Tags
from django.db import connections
from django_q import cluster
from django_q.management.commands import qcluster

from cardpicker.management.schema import require_migrations
from cardpicker.stage_e.sentinel import SteadySentinel


class Command(qcluster.Command):  # type: ignore[misc]
    """django-q2's command, which by itself asks no check that needs the database."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, and start with no connection open that the workers would inherit."""
        self.check(tags=[Tags.database], databases=["default"])
        require_migrations()
        connections.close_all()
        # There is no parameter for the class; a cluster looks the name up when it starts.
        cluster.Sentinel = SteadySentinel
        super().handle(*args, **options)
