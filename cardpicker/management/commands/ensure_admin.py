"""An account for the admin, once."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cardpicker.checks import OPERATOR_CHECKS
from cardpicker.operations.quickstart import ensure_admin
from cardpicker.stage_e.outcomes import ExitCode


class Command(BaseCommand):
    """Make a superuser unless it exists."""

    requires_system_checks = OPERATOR_CHECKS
    help = "Make a superuser with the password in DJANGO_SUPERUSER_PASSWORD unless it exists; exit 7 if it has another."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the account's name."""
        parser.add_argument("--username", default="admin")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the account, or tell that it has another password."""
        password = os.environ.get("DJANGO_SUPERUSER_PASSWORD")
        if not password:
            raise CommandError("Set DJANGO_SUPERUSER_PASSWORD to the password that a new account gets.")
        if not ensure_admin(options["username"], password):
            raise SystemExit(ExitCode.VERIFICATION_FAILED)
