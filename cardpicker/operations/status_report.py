"""The text that ``stage_e_status`` prints."""

from __future__ import annotations

from cardpicker.operations.durations import in_words, local_time
from cardpicker.operations.text_table import format_table
from cardpicker.stage_e.status import Status


def status_lines(status: Status) -> list[str]:
    """Return the status as lines of plain words and aligned tables."""
    return [
        *_headline(status),
        "",
        *_work(status),
        "",
        *_slots(status),
        *_budgets(status),
        *_quarantine(status),
        "",
        *_runs(status),
    ]


def _headline(status: Status) -> list[str]:
    state = "HALTED" if status.halted else "running" if status.streaming_enabled else "disabled"
    load = "unknown" if status.load_1m is None else f"{status.load_1m:.2f}"
    lines = [
        f"{state} on {status.host}, {local_time(status.at)}",
        f"load {load} of {status.load_ceiling:g}; throttled {status.throttled:,} times",
    ]
    for trip in status.trips:
        where = trip.host or "every host"
        lines.append(f"trip {trip.id}: {trip.bar} on {where} since {local_time(trip.opened_at)}: {trip.detail}")
    if status.trips:
        lines.append('acknowledge: python manage.py resolve_envelope_trip --acknowledge-trip ID --note "…"')
    return lines


def _work(status: Status) -> list[str]:
    counts = "  ".join(f"{state} {count:,}" for state, count in status.work.items())
    pace = "  ".join(f"{span}: {rate:g}" for span, rate in status.cards_per_minute.items())
    lines = [f"work       {counts}", f"cards/min  {pace}"]
    if status.oldest_due_at is not None:
        reasons = ", ".join(f"{reason or 'unknown'} {count:,}" for reason, count in status.due_by_reason.items())
        lines.append(f"oldest due {in_words(status.at - status.oldest_due_at)} ago ({reasons})")
    return lines


def _slots(status: Status) -> list[str]:
    if not status.slots:
        return [f"slots      none held of {status.slots_per_host} on this host"]
    rows = [
        [
            str(s.index),
            s.host or "another",
            s.run_id or "-",
            str(s.pid or "-"),
            str(s.backend_pid),
            s.client,
            in_words(status.at - s.held_since),
        ]
        for s in status.slots
    ]
    return format_table(["slot", "host", "run", "pid", "backend", "client", "held for"], rows, right=["slot", "pid"])


def _budgets(status: Status) -> list[str]:
    if not status.budgets:
        return []
    rows = [
        [
            budget.destination,
            f"{budget.now_per_s:.2f}",
            f"{budget.set_per_s:g}",
            f"{budget.widened_by:.2f}×",
            "yes" if budget.is_probing else "no",
            in_words(budget.next_permit_in_s),
            "-" if budget.pressed_at is None else f"{in_words(status.at - budget.pressed_at)} ago",
            "-" if budget.last_retry_after_s is None else in_words(budget.last_retry_after_s),
        ]
        for budget in status.budgets
    ]
    headings = ["fetch budget", "per s now", "set", "widened", "probing", "next in", "last pressure", "Retry-After"]
    return ["", *format_table(headings, rows, right=["per s now", "set", "widened"])]


def _quarantine(status: Status) -> list[str]:
    if not status.quarantined_by_cause:
        return []
    rows = [[cause or "unknown", f"{count:,}"] for cause, count in status.quarantined_by_cause.items()]
    return ["", *format_table(["quarantined as", "cards"], rows, right=["cards"])]


def _runs(status: Status) -> list[str]:
    if not status.last_runs:
        return ["no runs yet"]
    rows = [
        [local_time(r.started_at), r.run_id, r.status, f"{r.batch_size:,}", f"{r.elapsed_s:.1f}", r.host, r.reason]
        for r in status.last_runs
    ]
    headings = ["started", "run", "status", "cards", "s", "host", "reason"]
    return format_table(headings, rows, right=["cards", "s"])
