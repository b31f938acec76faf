"""The admin pages, one file an area; importing the package registers them."""

from __future__ import annotations

from cardpicker.operations.admin import art, cards, catalogue, evidence, fetching, runs, trail, trips, votes, work

__all__ = ["art", "cards", "catalogue", "evidence", "fetching", "runs", "trail", "trips", "votes", "work"]
