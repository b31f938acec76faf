"""Whose fault the end of a batch was: its cards lose an attempt only for what one of them may have caused."""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

from cardpicker.models import RunStatus
from cardpicker.stage_c.conveyor import WorkerInitError

#: Beside an error without a code: connection exceptions, a full disk or the like, an operator or a crash that ended the
#: session, a fault of the server's own system.
_SERVER_FAILED = ("08", "53", "57P", "58")


def is_cards_fault(error: BaseException) -> bool:
    """Whether a card of the batch may have caused ``error``; one that does so again and again is quarantined.

    A database that went away or has no room, compute processes that never were ready, and a request to stop have nothing to do with
    any card. A time-out may have.
    """
    if lost_database(error) or isinstance(error, WorkerInitError | KeyboardInterrupt):
        return False
    # django-q2's time-out is a SystemExit of another class.
    return type(error) is not SystemExit


def status_of(error: BaseException) -> RunStatus:
    """Return how a batch ended that ``error`` ended."""
    if lost_database(error) or not isinstance(error, Exception):
        return RunStatus.INTERRUPTED
    return RunStatus.FAILED


def lost_database(error: BaseException) -> bool:
    """Whether the session with the database was lost, none could be had, or the server could not do its work."""
    if isinstance(error, InterfaceError):
        return True
    code = getattr(error.__cause__, "pgcode", None)
    return isinstance(error, OperationalError) and (code is None or code.startswith(_SERVER_FAILED))
