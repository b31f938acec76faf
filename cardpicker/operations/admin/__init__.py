"""The admin pages, one file an area; importing the package registers them."""

from __future__ import annotations

from cardpicker.operations.admin import cards, catalogue, evidence, fetching, runs, trail, trips, votes, work

__all__ = ["cards", "catalogue", "evidence", "fetching", "runs", "trail", "trips", "votes", "work"]
