"""Start the workers, once the checks that need the database have passed too."""

from __future__ import annotations

from typing import Any

from django.core.checks import Tags
from django.db import connections
from django_q.management.commands import qcluster


class Command(qcluster.Command):  # type: ignore[misc]
    """django-q2's command, which by itself asks no check that needs the database."""

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, and start with no connection open that the workers would inherit."""
        self.check(tags=[Tags.database], databases=["default"])
        connections.close_all()
        super().handle(*args, **options)
