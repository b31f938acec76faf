"""Perceptual hash of a picture, and whether the picture has enough in it for the hash to mean anything."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

HASH_SIDE = 8
SAMPLE_SIDE = 32
MIN_DETAIL = 6.0  #: Below it, pictures share hashes: blanks, gradients, placeholders.


@cache
def _basis() -> NDArray[np.float64]:
    """The first rows of the type-II cosine transform over ``SAMPLE_SIDE`` samples."""
    k = np.arange(HASH_SIDE)[:, None]
    n = np.arange(SAMPLE_SIDE)[None, :]
    return np.asarray(np.cos(np.pi * k * (2 * n + 1) / (2 * SAMPLE_SIDE)))


def sample(picture: Image.Image) -> NDArray[np.float64]:
    """Return ``picture`` (mode L) as ``SAMPLE_SIDE`` × ``SAMPLE_SIDE`` gray levels."""
    small = picture.convert("L").resize((SAMPLE_SIDE, SAMPLE_SIDE), Image.Resampling.LANCZOS)
    return np.asarray(small, dtype=np.float64)


def phash64(samples: NDArray[np.float64]) -> int:
    """Return the 64-bit perceptual hash of ``samples``, most significant bit first; bits equal imagehash's `phash`.

    Source:
        Zauner, "Implementation and benchmarking of perceptual image hash functions", 2010; DCT, 8×8 of 32×32, median.
    """
    basis = _basis()
    low = basis @ samples @ basis.T
    # Equal pixels must give equal bits on every machine: last-digit noise of the transform is rounded away.
    low = np.round(low, 6)
    bits = (low > np.median(low)).ravel()
    return int("".join("1" if bit else "0" for bit in bits), 2)


def detail(samples: NDArray[np.float64]) -> float:
    """Return how much goes on in ``samples``: mean absolute difference of neighbors and spread, in gray levels.

    A gradient has spread but no detail, and noise on a blank has detail but no spread; the smaller of both counts.
    """
    steps = np.abs(np.diff(samples, 2, axis=0)).mean() + np.abs(np.diff(samples, 2, axis=1)).mean()
    return float(min(steps, samples.std()))


def usable_hash(samples: NDArray[np.float64]) -> int | None:
    """Return the hash of ``samples``, None where they have too little detail to be told from others; never 0."""
    return (phash64(samples) or None) if detail(samples) >= MIN_DETAIL else None


def signed64(value: int) -> int:
    """Return the 64-bit pattern ``value`` as PostgreSQL's signed bigint."""
    return value - (1 << 64) if value >= 1 << 63 else value
