"""The process that guards a cluster's workers, made proof against the death of any one of them.

django-q2's own starts a new process in the place of a dead one. That is not enough: a process that is killed while it
waits on a queue takes the queue's lock with it, and whoever reads that queue afterwards waits for ever.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
from multiprocessing import Event, Queue, queues
from typing import Any

from django_q.cluster import Sentinel
from django_q.conf import Conf

logger = logging.getLogger(__name__)

END_PATIENCE_S = 5.0
_IDLE = -1  #: A worker's timer, as django-q2 sets it.
_PR_SET_PDEATHSIG = 1
# Loaded here, because a forked child must not load a library: another thread may have held the loader's lock.
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


class SteadySentinel(Sentinel):  # type: ignore[misc]
    """Starts everything over when a death may have taken a lock, and ends with the process that started it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        end_with_parent(os.getppid())
        self.pid, self._forking = os.getpid(), 0
        os.register_at_fork(before=self._remember_who_forks, after_in_child=self._bind_own_children)
        super().__init__(*args, **kwargs)

    def reincarnate(self, process: Any) -> None:
        """Replace a dead process, or all of them."""
        if not self._took_a_lock(process):
            super().reincarnate(process)
            return
        logger.critical("%s was killed while it waited on a queue: starting all processes over", process.name)
        self._end_all()
        self.task_queue: queues.Queue[Any] = Queue(maxsize=Conf.QUEUE_LIMIT) if Conf.QUEUE_LIMIT else Queue()
        self.result_queue: queues.Queue[Any] = Queue()
        self.event_out = Event()
        self.spawn_cluster()
        self.reincarnations += 1

    def _remember_who_forks(self) -> None:
        self._forking = os.getpid()

    def _bind_own_children(self) -> None:
        # A worker inherits this; what it forks is its own affair.
        if self._forking == self.pid:
            end_with_parent(self.pid)

    def _took_a_lock(self, process: Any) -> bool:
        """Whether a process was killed and read a queue at that moment: the monitor always does, a worker when idle."""
        if process.is_alive() or (process.exitcode or 0) >= 0 or process is self.pusher:
            return False
        return process is self.monitor or process.timer.value == _IDLE

    def _end_all(self) -> None:
        # A batch that runs is interrupted, and taken up again like that of any worker that dies.
        doomed = [*self.pool, self.monitor, self.pusher]
        for process in doomed:
            process.kill()
        for process in doomed:
            process.join(END_PATIENCE_S)


def end_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when its parent ends (Linux); at once, if it has ended already."""
    if _LIBC is None:
        return
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(1)
