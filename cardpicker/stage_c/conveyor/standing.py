"""Compute processes that outlive a run, so that what they load is loaded once and not for every run."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .pool import Pool
from .types import ConveyorSettings


class StandingPool:
    """Lends its processes to one run at a time, for as long as what they run stays the same.

    They end with the process that owns them, however it ends; ``close`` ends them sooner. A forked copy of the owner
    makes processes of its own.
    """

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._made_for: tuple[Any, ...] = ()
        self._is_lent = False

    def lend(
        self,
        settings: ConveyorSettings,
        compute: Callable[[bytes, Any], Any],
        initializer: Callable[..., None] | None,
        initargs: tuple[Any, ...],
    ) -> Pool:
        """Return a pool for one run; give it back by ``take_back``."""
        wanted = (os.getpid(), settings, compute, initializer, initargs)
        if self._is_lent and self._made_for[0] == os.getpid():
            return Pool(settings, compute, initializer, initargs)
        if self._made_for != wanted:
            self.close()
            self._pool, self._made_for = Pool(settings, compute, initializer, initargs), wanted
        assert self._pool is not None
        self._is_lent = True
        return self._pool

    def take_back(self, pool: Pool, *, is_sound: bool) -> None:
        """End the processes that are busy still, or all of them when the pool is not sound or not the standing one."""
        if pool is not self._pool:
            pool.stop(at_once=not is_sound)
            return
        self._is_lent = False
        if is_sound:
            pool.end_busy()
        else:
            self.close(at_once=True)

    def close(self, *, at_once: bool = False) -> None:
        """End the processes, unless they are another process's."""
        pool, self._pool = self._pool, None
        owner = self._made_for[0] if self._made_for else None
        self._made_for, self._is_lent = (), False
        if pool is not None and owner == os.getpid():
            pool.stop(at_once=at_once)
