"""Start-up checks: settings that would lose work, double it or wedge a host are refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import connection

from cardpicker.stage_c.settings import usable_cores

QUEUE = "queue"

#: What an operator's command checks at each start: what would do harm. Advice is given by ``check`` and ``qcluster``.
OPERATOR_CHECKS = (QUEUE,)

#: A worker's own, its dispatch's slot, and its run's ear for lockouts.
CONNECTIONS_PER_WORKER = 3
#: The cluster's other processes, a sweep with its lock, and a few for the web server.
CONNECTIONS_BESIDE = 10

#: Seconds in which a dispatch that has reached its deadline drains, judges and closes its row.
CLOSING_TIME_S = 30


@register(QUEUE)
def check_queue(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a ``Q_CLUSTER`` under which tasks cannot start a pool, run twice, or are never stopped."""
    cluster: dict[str, Any] = getattr(settings, "Q_CLUSTER", {})
    timeout, retry = cluster.get("timeout"), cluster.get("retry", 60)
    found: list[CheckMessage] = []
    if cluster.get("daemonize_workers", True):
        found.append(
            Error(
                "django-q2's workers are daemonic, so no task can start its extraction processes.",
                hint='Set Q_CLUSTER["daemonize_workers"] = False.',
                id="cardpicker.E001",
            )
        )
    if not timeout or retry <= timeout:
        found.append(
            Error(
                f"A task may run for {timeout or 'any number of'} s and is handed out again after {retry} s.",
                hint="Set Q_TASK_TIMEOUT_S, and Q_TASK_RETRY_S well above it.",
                id="cardpicker.E002",
            )
        )
    if cluster.get("cpu_affinity"):
        found.append(
            Error(
                "cpu_affinity pins a worker and its extraction processes to one core.",
                hint='Remove "cpu_affinity" from Q_CLUSTER.',
                id="cardpicker.E003",
            )
        )
    if cluster.get("guard_cycle", 0.5) not in (0.25, 0.5, 1):
        found.append(
            Error(
                f"guard_cycle {cluster['guard_cycle']} never counts down to exactly 0, so the hard kill never fires.",
                hint='Set Q_CLUSTER["guard_cycle"] to 0.25, 0.5 or 1.',
                id="cardpicker.E004",
            )
        )
    return found


@register(QUEUE)
def check_deadlines(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a batch deadline that django-q2's would overtake: it ends the process, not the batch."""
    deadline, timeout = settings.STAGE_E.batch_deadline_s, float(settings.Q_CLUSTER.get("timeout") or 0)  # type: ignore[arg-type]
    if deadline + CLOSING_TIME_S <= timeout:
        return []
    return [
        Error(
            f"A batch may run for {deadline:g} s and needs {CLOSING_TIME_S} s to close,"
            f" but django-q2 ends its task after {timeout} s.",
            hint="Lower STAGE_E_BATCH_DEADLINE_S or raise Q_TASK_TIMEOUT_S, and Q_TASK_RETRY_S above that.",
            id="cardpicker.E005",
        )
    ]


@register(Tags.database)
def check_slot_connection(
    app_configs: Sequence[Any] | None, databases: Any = None, **kwargs: Any
) -> list[CheckMessage]:
    """Refuse a pooler under the dispatch slot; asked when databases are checked, as ``migrate`` and ``qcluster`` do."""
    if not databases or "default" not in databases:
        return []
    from cardpicker.stage_e.concurrency import SlotConnectionError, TransactionPoolerError, probe
    from cardpicker.stage_e.dispatch import slot_settings

    try:
        probe(slot_settings(settings.STAGE_E))
    except TransactionPoolerError as error:
        return [Error(str(error), id="cardpicker.E006")]
    except SlotConnectionError as error:
        if settings.STAGE_E.lock_dsn:
            return [Error(str(error), hint="Set STAGE_E_LOCK_DSN to an address that answers.", id="cardpicker.E007")]
        # The slot would use Django's own server, and whoever needs that says what to do.
    return []


@register(Tags.database)
def check_connections(app_configs: Sequence[Any] | None, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Warn when the workers of this host alone may ask for more connections than the server has."""
    if not databases or "default" not in databases:
        return []
    needed = settings.STAGE_E.q_workers * CONNECTIONS_PER_WORKER + CONNECTIONS_BESIDE
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        )
        (allowed,) = cursor.fetchone()
    if needed <= allowed:
        return []
    return [
        Warning(
            f"This host's {settings.STAGE_E.q_workers} workers may need {needed} connections, and the server has {allowed}.",
            hint="Lower Q_WORKERS, or raise max_connections of the server.",
            id="cardpicker.W003",
        )
    ]


@register(Tags.database)
def check_encoding(app_configs: Sequence[Any] | None, databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """Refuse a database that cannot hold the names of cards and what is read off them."""
    if not databases or "default" not in databases:
        return []
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_encoding")
        (encoding,) = cursor.fetchone()
    if encoding == "UTF8":
        return []
    return [
        Error(
            f"The database's encoding is {encoding}, which cannot hold the names of cards.",
            hint="Create it with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
            id="cardpicker.E008",
        )
    ]


@register("host")
def check_host(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """Warn of ceilings that do not fit this host."""
    found: list[CheckMessage] = []
    if settings.STAGE_E.host_load_ceiling > usable_cores():
        found.append(
            Warning(
                f"The load ceiling {settings.STAGE_E.host_load_ceiling:g} is above this host's {usable_cores()} usable cores.",
                hint="Set STAGE_E_HOST_LOAD_CEILING to at most the number of cores, unless the host is shared.",
                id="cardpicker.W001",
            )
        )
    if settings.STAGE_E.max_concurrent_dispatches < 1:
        found.append(
            Warning(
                f"STAGE_E_MAX_CONCURRENT_DISPATCHES={settings.STAGE_E.max_concurrent_dispatches} is raised to 1.",
                hint="To stop dispatch, set STAGE_E_STREAMING_ENABLED=0 or pause it.",
                id="cardpicker.W002",
            )
        )
    return found
