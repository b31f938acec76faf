"""The compute processes as their owner sees them: started, handed one job at a time, replaced, ended."""

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from .fork_server import ensure_own_fork_server
from .log_handlers import held_log_handlers
from .process import Answer, Kind, receive_frame, send, work
from .types import (
    ComputeCrashed,
    Computed,
    ComputeFailed,
    ConveyorOutcome,
    ConveyorSettings,
    Payload,
    WorkerInitError,
    describe,
)

TICK_S = 1.0
CHANNEL_TIMEOUT_S = 10.0
INIT_DEATHS_ALLOWED = 3


class Job(Protocol):
    """What a pool works on: it takes ``payload`` and leaves ``outcome``."""

    payload: Payload | None
    outcome: ConveyorOutcome | None
    compute_s: float


@dataclass(slots=True, eq=False)
class _Worker:
    process: Any
    channel: socket.socket
    lifeline: socket.socket
    started_at: float = field(default_factory=time.monotonic)
    ready: bool = False
    job: Job | None = None
    job_since: float = 0.0
    served: int = 0


class Pool:
    """Compute processes, each with a channel of its own and at most one job."""

    def __init__(
        self,
        settings: ConveyorSettings,
        compute: Callable[[bytes, Any], Any],
        initializer: Callable[..., None] | None,
        initargs: tuple[Any, ...],
    ) -> None:
        self.settings = settings
        self._task = pickle.dumps((compute, initializer, initargs))
        self._context = multiprocessing.get_context(settings.start_method)
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._init_deaths = 0
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_out, selectors.EVENT_READ)

    @property
    def lacking(self) -> int:
        """How many processes are missing."""
        return self.settings.compute_workers - len(self._workers)

    def start(self) -> None:
        """Start the processes that are missing; they make themselves ready on their own time."""
        for _ in range(self.lacking):
            try:
                self._start_one()
            except (OSError, EOFError) as error:
                self._count_init_death(f"a compute process could not be started: {describe(error)}")

    def _start_one(self) -> None:
        if self.settings.start_method == "forkserver":
            ensure_own_fork_server(self.settings.preload)
        with contextlib.ExitStack() as opened:
            ours, theirs = (opened.enter_context(end) for end in socket.socketpair())
            our_line, their_line = (opened.enter_context(end) for end in socket.socketpair())
            # Daemonic, so that a generator that nobody closed does not keep the interpreter from its end.
            process = self._context.Process(  # type: ignore[attr-defined]
                target=work,
                args=(theirs, their_line, self._task, self.settings.worker_rss_mb, self.settings.niceness),
                daemon=True,
                name="stage-c-compute",
            )
            with held_log_handlers() if self.settings.start_method == "fork" else contextlib.nullcontext():
                process.start()
            opened.pop_all()
        theirs.close()
        their_line.close()
        ours.settimeout(CHANNEL_TIMEOUT_S)
        worker = _Worker(process=process, channel=ours, lifeline=our_line)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)

    def wake(self) -> None:
        """End a ``wait``; safe from any thread."""
        with contextlib.suppress(OSError):
            self._wake_in.send(b"!")

    def assign(self, jobs: Iterable[Job]) -> None:
        """Hand the jobs, oldest first, to idle processes."""
        idle = [worker for worker in self._workers if worker.ready and worker.job is None]
        for worker, job in zip(idle, jobs, strict=False):
            payload, job.payload = job.payload, None
            assert payload is not None
            worker.job, worker.job_since = job, time.monotonic()
            try:
                send(worker.channel, (payload.body, payload.context))
            except OSError as error:
                self._bury(worker, f"the compute process took no work: {describe(error)}")
            except Exception as error:
                worker.job, job.outcome = None, ComputeFailed(detail=describe(error))

    def wait(self, timeout_s: float) -> None:
        """Wait until a result, a fetch, a death or the timeout; kill what overran its time."""
        for key, _ in self._selector.select(timeout=timeout_s):
            if key.data is None:
                with contextlib.suppress(BlockingIOError):
                    self._wake_out.recv(4096)
            else:
                self._receive(key.data)
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.job is not None and now - worker.job_since > self.settings.compute_timeout_s:
                self._bury(worker, f"ran longer than {self.settings.compute_timeout_s:g} s")
            elif not worker.ready and now - worker.started_at > self.settings.start_timeout_s:
                self._bury(worker, f"a compute process was not ready after {self.settings.start_timeout_s:g} s")

    def end_busy(self) -> None:
        """End the processes that hold a job or are not ready, and keep the others for another run."""
        for worker in list(self._workers):
            if worker.job is not None or not worker.ready:
                worker.process.kill()
                self._remove(worker)

    def bury_dead(self) -> None:
        """Forget the processes that died while nobody watched."""
        self.wait(0.0)

    def stop(self, *, at_once: bool) -> None:
        """End every process: ask, then TERM, then KILL; idle ones leave when their channel closes."""
        for worker in self._workers:
            worker.channel.close()
            worker.lifeline.close()
        if not at_once:
            self._await_ends()
        for worker in self._workers:
            worker.process.terminate()
        self._await_ends()
        for worker in self._workers:
            worker.process.kill()
        self._await_ends()
        self._selector.close()
        self._wake_in.close()
        self._wake_out.close()

    def _await_ends(self) -> None:
        deadline = time.monotonic() + self.settings.stop_grace_s
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
        self._workers = [worker for worker in self._workers if worker.process.is_alive()]

    def _receive(self, worker: _Worker) -> None:
        try:
            answer: Answer = pickle.loads(receive_frame(worker.channel))
        except (OSError, EOFError, pickle.UnpicklingError):
            self._bury(worker, None)
            return
        if answer.kind is Kind.READY:
            worker.ready = True
            self._init_deaths = 0
            return
        if answer.kind is Kind.INIT_FAILED:
            raise WorkerInitError(answer.detail)
        job, worker.job = worker.job, None
        worker.served += 1
        if job is not None:
            job.compute_s = answer.compute_s
            job.outcome = _outcome(answer)
        if worker.served >= self.settings.tasks_per_worker or answer.has_outgrown:
            self._remove(worker)

    def _bury(self, worker: _Worker, detail: str | None) -> None:
        job, worker.job = worker.job, None
        exit_code = self._remove(worker)
        if job is not None:
            job.compute_s = time.monotonic() - worker.job_since
            job.outcome = ComputeCrashed(detail=detail or f"the compute process {_describe_exit(exit_code)}")
        if not worker.ready:
            ended = f"compute processes die before they are ready: the last {_describe_exit(exit_code)}"
            self._count_init_death(detail or ended)

    def _count_init_death(self, detail: str) -> None:
        self._init_deaths += 1
        if self._init_deaths >= INIT_DEATHS_ALLOWED:
            raise WorkerInitError(detail)

    def _remove(self, worker: _Worker) -> int | None:
        self._selector.unregister(worker.channel)
        worker.channel.close()
        worker.lifeline.close()
        self._workers.remove(worker)
        worker.process.join(0.2)
        exit_code: int | None = worker.process.exitcode
        if exit_code is None:
            worker.process.kill()
            worker.process.join(self.settings.stop_grace_s)
            exit_code = -signal.SIGKILL
        return exit_code


def _outcome(answer: Answer) -> ConveyorOutcome:
    if answer.kind is not Kind.COMPUTED:
        return ComputeFailed(detail=answer.detail)
    try:
        return Computed(value=pickle.loads(answer.value))
    except Exception as error:
        return ComputeFailed(detail=f"the result does not unpickle: {describe(error)}")


def _describe_exit(exit_code: int | None) -> str:
    if exit_code is None or exit_code >= 0:
        return f"ended with exit code {exit_code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-exit_code).name}"
    return f"was ended by signal {-exit_code}"
