"""Who runs a command."""

from __future__ import annotations

import getpass

from django.core.management.base import CommandError


def name_or_account(name: str) -> str:
    """Return ``name``, or where it is blank the account that runs this.

    Raises:
        CommandError: the account has no name, as in a container.
    """
    if name.strip():
        return name
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise CommandError("The account that runs this has no name: say who you are with --who.") from error
