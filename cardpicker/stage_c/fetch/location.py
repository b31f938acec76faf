"""Where a card's image is fetched from, and what that place may be trusted with."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

from cardpicker.sources.drive_address import DRIVE_ID, RESOURCE_KEY
from cardpicker.sources.errors import SourceError, UnsafeIdentifierError
from cardpicker.sources.registry import kind_for
from cardpicker.stage_c.fetch.destinations import destination_of, redirect_hosts
from cardpicker.stage_c.fetch.fetcher import NO_TRUST, Trust
from cardpicker.stage_c.fetch.limiter import GOOGLE_IMAGE
from cardpicker.stage_c.outcomes import Failed, Unusable, UnusableKind
from cardpicker.stage_c.settings import StageCSettings

GOOGLE_DRIVE = "google_drive"
JPEG_QUALITY = 95
ORIGINAL = "original"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePlace:
    """A location with what fetching it needs to know."""

    location: str  #: A ``file:``, ``http:`` or ``https:`` URL.
    trust: Trust = NO_TRUST
    destination: str = ""  #: The shared budget it draws on; empty: none.
    is_original: bool = True  #: Whether its bytes are the listed file's own, so that the listed checksums hold.
    rendition: str = ORIGINAL  #: What its bytes are, to be kept with what is read off them.
    dpi: int = 0  #: The resolution that is asked for; 0: whatever there is.


def image_place(
    source_kind: str, source_location: str, identifier: str, settings: StageCSettings, resource_key: str = ""
) -> ImagePlace | Unusable | Failed:
    """Return where the image of ``identifier`` is fetched from, or why from nowhere.

    Args:
        resource_key: what the source wants to be shown with the identifier; empty: nothing.
    """
    if source_kind == GOOGLE_DRIVE:
        return _cdn_place(identifier, resource_key, settings)
    try:
        location = kind_for(source_kind).image_location(source_location, identifier)
    except UnsafeIdentifierError as error:
        return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=str(error)[:300])
    except SourceError as error:
        return Failed(detail=str(error)[:300])
    if location.startswith("file:"):
        return ImagePlace(location=location, trust=Trust(folder=source_location))
    host = next(iter(_host_of(location)), "")
    trust = Trust(private_hosts=_host_of(source_location), redirect_hosts=redirect_hosts(host, settings))
    return ImagePlace(location=location, trust=trust, destination=destination_of(host))


def _cdn_place(identifier: str, resource_key: str, settings: StageCSettings) -> ImagePlace | Unusable | Failed:
    if not settings.image_worker_url:
        return Failed(detail="Google Drive images come through the image CDN: set IMAGE_WORKER_URL")
    if DRIVE_ID.fullmatch(identifier) is None:
        return Unusable(kind=UnusableKind.BAD_IDENTIFIER, detail=f"not a Google Drive id: {identifier[:60]!r}")
    dpi = round(settings.image_dpi / 10) * 10
    key = f"&resourceKey={resource_key}" if RESOURCE_KEY.fullmatch(resource_key) else ""
    base = settings.image_worker_url.rstrip("/")
    return ImagePlace(
        location=f"{base}/images/{GOOGLE_DRIVE}/full/{identifier}.jpg?dpi={dpi}&jpgQuality={JPEG_QUALITY}{key}",
        trust=Trust(private_hosts=_host_of(base), is_cdn=True),
        destination=GOOGLE_IMAGE,
        is_original=False,
        rendition=f"full dpi={dpi} quality={JPEG_QUALITY}",
        dpi=dpi,
    )


def _host_of(url: str) -> frozenset[str]:
    try:
        host = urllib.parse.urlsplit(url).hostname
    except ValueError:
        host = None
    return frozenset({host}) if host else frozenset()
