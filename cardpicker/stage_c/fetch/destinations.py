"""Hosts that have a budget, and where they may send us on to."""

from __future__ import annotations

from cardpicker.stage_c.fetch.limiter import GOOGLE_IMAGE, SCRYFALL_API, SCRYFALL_IMAGE
from cardpicker.stage_c.fetch.urls import is_host_of
from cardpicker.stage_c.settings import StageCSettings

#: The first that fits: by host, or by a domain with a dot in front and all below it.
DESTINATIONS = {
    ".googleusercontent.com": GOOGLE_IMAGE,
    "drive.google.com": GOOGLE_IMAGE,
    "docs.google.com": GOOGLE_IMAGE,
    "data.scryfall.io": SCRYFALL_API,  # Bulk files: few and large, so that the API's rate is the one to keep to.
    "api.scryfall.com": SCRYFALL_API,
    ".scryfall.io": SCRYFALL_IMAGE,
}
_RATES_PER_S = {SCRYFALL_IMAGE: 10.0, SCRYFALL_API: 2.0}


def destination_of(host: str) -> str:
    """Return the budget that fetches from ``host`` draw on, empty when none."""
    return next((budget for pattern, budget in DESTINATIONS.items() if is_host_of(host, pattern)), "")


def rate_per_s(destination: str, settings: StageCSettings) -> float:
    """Return the images per second that all processes and hosts together may ask of a destination."""
    return _RATES_PER_S.get(destination, settings.google_image_rate)


def redirect_hosts(host: str, settings: StageCSettings) -> frozenset[str]:
    """Return where an image on ``host`` may lead on to: hosts of the same budget, and those that are configured."""
    budget = destination_of(host)
    kin = {pattern for pattern, other in DESTINATIONS.items() if budget and other == budget}
    configured = {part.strip().lower() for part in settings.redirect_hosts.split(",")}
    return frozenset(kin | configured - {""})
