"""The inside of a process that does chunks: Django made ready for its owner's database, then one chunk at a time.

Imports nothing of this project when it is loaded, for models cannot be imported before Django is ready.
"""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cardpicker.operations.bulk.chunk import Order
    from cardpicker.operations.bulk.jobs import ChunkResult


def start(database: str) -> None:
    """Make the process ready for the database of its owner."""
    import django

    django.setup()
    from django.db import connection

    connection.settings_dict["NAME"] = database


def work(body: bytes, order: Order) -> ChunkResult:
    """Do one chunk; ``body`` is its cards, pickled."""
    from cardpicker.operations.bulk.chunk import do_chunk

    return do_chunk(order, pickle.loads(body))
