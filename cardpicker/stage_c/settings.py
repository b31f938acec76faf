"""Sizes and limits of Stage C, read once from the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass

from cardpicker.environment import setting

START_METHODS = ("forkserver", "fork")
OCR_ENGINES = ("tesserocr", "pytesseract")


def usable_cores() -> int:
    """Return how many cores this process may run on, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return os.cpu_count() or 1


def _default_workers() -> int:
    return min(3, usable_cores())


@dataclass(frozen=True, slots=True, kw_only=True)
class StageCSettings:
    """How one dispatch reads images: pool sizes, limits of a fetch, the OCR engine."""

    fetch_threads: int = setting("STAGE_C_FETCH_THREADS", 3, "Concurrent downloads of one dispatch.", low=1, high=32)
    compute_workers: int = setting(
        "STAGE_C_COMPUTE_WORKERS",
        _default_workers,
        "Extraction processes of one dispatch; default min(3, usable cores).",
        low=1,
        high=64,
    )
    pool_queue_depth: int = setting(
        "STAGE_C_POOL_QUEUE_DEPTH",
        0,
        "Images held at once between the start of a fetch and a stored result; 0 means 2 × workers.",
        low=0,
        high=512,
    )
    start_method: str = setting(
        "STAGE_C_START_METHOD", "forkserver", "How extraction processes are started.", choices=START_METHODS
    )
    compute_timeout_s: float = setting(
        "STAGE_C_COMPUTE_TIMEOUT_S",
        60.0,
        "Seconds one image may take to extract before its process is killed.",
        low=1,
        high=600,
    )
    tasks_per_worker: int = setting(
        "STAGE_C_TASKS_PER_WORKER", 500, "Images after which an extraction process is replaced.", low=1
    )
    worker_rss_mb: int = setting(
        "STAGE_C_WORKER_RSS_MB",
        400,
        "Resident memory in MB above which an extraction process is replaced between images.",
        low=64,
    )
    niceness: int = setting(
        "STAGE_C_NICENESS",
        10,
        "How far extraction processes stand back behind whatever else the host does, such as the site.",
        low=0,
        high=19,
    )
    ocr_engine: str = setting("STAGE_C_OCR_ENGINE", "tesserocr", "The OCR engine.", choices=OCR_ENGINES)
    fetch_deadline_s: float = setting(
        "STAGE_C_FETCH_DEADLINE_S", 60.0, "Seconds one image may take to arrive, in total.", low=1, high=600
    )
    fetch_max_bytes: int = setting(
        "STAGE_C_FETCH_MAX_BYTES", 50_000_000, "Largest image file accepted, in bytes.", low=1_000
    )
    image_worker_url: str = setting(
        "IMAGE_WORKER_URL", "", "Base URL of the image CDN; empty: only local and HTTP sources."
    )
    image_dpi: int = setting(
        "IMAGE_DPI", 250, "Resolution asked of the image CDN, a multiple of 10.", low=50, high=1200
    )
    google_image_rate: float = setting(
        "GOOGLE_IMAGE_RATE", 7.0, "Google images per second over all processes and hosts.", low=0.1, high=100
    )
    redirect_hosts: str = setting(
        "STAGE_C_REDIRECT_HOSTS",
        "",
        "Other hosts that images of manifests may be redirected to, separated by commas; .example.org means all below.",
    )

    @property
    def queue_depth(self) -> int:
        """Images in flight at most: ``pool_queue_depth``, or twice the compute workers when that is 0."""
        return self.pool_queue_depth or 2 * self.compute_workers
