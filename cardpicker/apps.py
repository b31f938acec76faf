"""Wiring: the app, its start-up checks and its signal receivers."""

from __future__ import annotations

from django.apps import AppConfig


class CardpickerConfig(AppConfig):
    """The one Django app of the monolith."""

    name = "cardpicker"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register checks and connect signals."""
        from cardpicker import checks  # noqa: F401
        from cardpicker.stage_e import signals

        signals.connect()
