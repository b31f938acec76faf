"""A moment without log writes, for a fork: Python renews a handler's lock in the child, but not its stream's."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

#: A handler that does not come free is forked as it is: better a risk than a deadlock between handlers that nest.
ACQUIRE_TIMEOUT_S = 1.0


@contextlib.contextmanager
def held_log_handlers() -> Iterator[None]:
    """Hold the lock of every log handler during the block."""
    loggers = [logging.root, *logging.root.manager.loggerDict.copy().values()]
    handlers = {handler for logger in loggers if isinstance(logger, logging.Logger) for handler in logger.handlers}
    with contextlib.ExitStack() as held:
        for handler in handlers:
            lock = handler.lock
            if lock is not None and lock.acquire(timeout=ACQUIRE_TIMEOUT_S):
                held.callback(lock.release)
        yield
