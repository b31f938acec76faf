"""Whether the database is of this version: its migrations against those of the code."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.management.base import CommandError
from django.db import connection
from django.db.migrations.executor import MigrationExecutor


def missing_migrations() -> list[str]:
    """Return the migrations that the database still needs, in their order."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _backwards in plan]


def behind(missing: Sequence[str]) -> str:
    """Say what to do about ``missing``, in one line."""
    count = "1 migration" if len(missing) == 1 else f"{len(missing)} migrations"
    return f"The database lacks {count} of this version, {missing[0]} first: run `python manage.py migrate`, then this again."


def require_migrations() -> None:
    """Refuse to go on with a database of another version.

    Raises:
        CommandError: it lacks migrations.
    """
    if missing := missing_migrations():
        raise CommandError(behind(missing))
