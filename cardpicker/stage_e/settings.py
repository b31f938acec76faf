"""When, how much and whether: the settings of Stage E, read once from the environment."""

from __future__ import annotations

from dataclasses import dataclass

from cardpicker.environment import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class StageESettings:
    """Size of a batch, the slots of this host, the bars of the envelope and the clocks that bound a dispatch."""

    streaming_enabled: bool = setting(
        "STAGE_E_STREAMING_ENABLED", False, "Whether saved cards and evidence are dispatched at all."
    )
    micro_batch_size: int = setting("STAGE_E_MICRO_BATCH_SIZE", 25, "Cards of one dispatch.", low=10, high=100)
    max_concurrent_dispatches: int = setting(
        "STAGE_E_MAX_CONCURRENT_DISPATCHES",
        2,
        "Dispatches at once on this host; less than 1 is raised to 1 with a warning.",
    )
    lock_dsn: str = setting(
        "STAGE_E_LOCK_DSN", "", "Direct PostgreSQL DSN for the slot when the application connects through a pooler."
    )
    host_id: str = setting(
        "STAGE_E_HOST_ID", "", "Name under which this host's slots, load and runs are kept; empty: its network name."
    )
    host_load_ceiling: float = setting(
        "STAGE_E_HOST_LOAD_CEILING", 7.0, "1-minute load average above which dispatch halts.", low=0.1
    )
    rss_mb_ceiling: int = setting(
        "STAGE_E_RSS_MB_CEILING",
        512,
        "Resident memory in MB of any one process of a dispatch above which dispatch halts.",
        low=64,
    )
    fetch_failure_rate_ceiling: float = setting(
        "STAGE_E_FETCH_FAILURE_RATE_CEILING", 0.01, "Share of failed fetches above which dispatch halts.", low=0, high=1
    )
    fetch_failure_window: int = setting(
        "STAGE_E_FETCH_FAILURE_WINDOW", 500, "Latest fetches that the failure rate is taken over.", low=10, high=100_000
    )
    fetch_failure_minimum: int = setting(
        "STAGE_E_FETCH_FAILURE_MINIMUM", 200, "Fetches needed before the failure rate is judged.", low=1, high=100_000
    )
    max_attempts: int = setting(
        "STAGE_E_MAX_ATTEMPTS", 5, "Attempts after which a card is quarantined.", low=1, high=100
    )
    lease_s: float = setting("STAGE_E_LEASE_S", 60.0, "Seconds a claim lasts without a heartbeat.", low=5, high=3600)
    batch_deadline_s: float = setting(
        "STAGE_E_BATCH_DEADLINE_S",
        240.0,
        "Seconds one dispatch may run before it hands back what it has not started.",
        low=10,
    )
    task_timeout_s: int = setting("Q_TASK_TIMEOUT_S", 300, "Seconds after which django-q2 terminates a task.", low=15)
    task_retry_s: int = setting("Q_TASK_RETRY_S", 900, "Seconds after which django-q2 hands a task out again.", low=20)
    q_workers: int = setting("Q_WORKERS", 2, "django-q2 worker processes of one cluster.", low=1, high=64)

    @property
    def slots(self) -> int:
        """Dispatch slots of this host, at least 1."""
        return max(1, self.max_concurrent_dispatches)
