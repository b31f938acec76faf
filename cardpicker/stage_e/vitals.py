"""Vital signs of this host and of this process with all that it started. They are measured here and judged elsewhere."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

import psutil
from django.conf import settings

_MB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """One sample."""

    load_1m: float | None  #: 1-minute load average; None where the host has none.
    largest_rss_mb: float  #: Resident memory of the largest process of the tree.
    tree_rss_mb: float  #: Memory of the whole tree, shared pages counted once where the host can tell.


def host_name() -> str:
    """Return the name under which this host's slots, trips and runs are kept."""
    return (settings.STAGE_E.host_id or socket.gethostname())[:255]


def sample_vitals() -> Vitals:
    """Measure the host's load and the memory of this process and its descendants."""
    root = psutil.Process()
    largest = tree = 0.0
    for process in (root, *root.children(recursive=True)):
        try:
            rss = process.memory_info().rss / _MB
            largest = max(largest, rss)
            tree += _proportional_mb(process, rss)
        except psutil.Error:
            continue
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return Vitals(load_1m=load, largest_rss_mb=largest, tree_rss_mb=tree)


def _proportional_mb(process: psutil.Process, rss_mb: float) -> float:
    try:
        pss = getattr(process.memory_full_info(), "pss", None)
    except psutil.Error:
        return rss_mb
    return rss_mb if pss is None else pss / _MB
