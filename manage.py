#!/usr/bin/env python
"""Run a management command; an operator's mistake gets one line, never a traceback."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the command named on the command line and return its exit code."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import ProgrammingError, connection
    except ImportError:
        print("Django is not installed here: run scripts/ops/quickstart.sh, or activate .venv.", file=sys.stderr)
        return 1
    from config.database.base import NoDatabaseError

    try:
        execute_from_command_line(sys.argv)
    except (ImproperlyConfigured, NoDatabaseError) as error:
        print(error, file=sys.stderr)
        return 1
    except ProgrammingError:
        from cardpicker.management.schema import behind, missing_migrations

        connection.close()
        if not (missing := missing_migrations()):
            raise
        print(behind(missing), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
