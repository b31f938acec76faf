"""What the tests of Google Drive share: a source on the fake Google, synced without waiting."""

from __future__ import annotations

from dataclasses import dataclass, field

from cardpicker.models import Source
from cardpicker.sources.drive_api import DriveApi
from cardpicker.sources.drive_auth import ApiKey, Credential
from cardpicker.sources.google_drive import GoogleDrive
from cardpicker.sources.report import SyncReport
from cardpicker.sources.sync import sync_source
from cardpicker.tests.fake_google import API_KEY, ROOT, FakeGoogle


@dataclass
class DriveRig:
    """A fake Google, and the pauses that were asked for instead of being made."""

    google: FakeGoogle
    credential: Credential = field(default_factory=lambda: ApiKey(API_KEY))
    pauses: list[float] = field(default_factory=list)

    @property
    def kind(self) -> GoogleDrive:
        """The kind as the registry would hold it."""
        return GoogleDrive(lambda: DriveApi(credential=self.credential, url=self.google.url, pause=self.pauses.append))

    def source(self, location: str = ROOT) -> Source:
        """Return the source, created or as it is stored now."""
        found, _ = Source.objects.get_or_create(key="drive", defaults={"kind": "google_drive", "location": location})
        return found

    def sync(self, **options: bool) -> SyncReport:
        """Sync the source as it is stored now."""
        return sync_source(self.source(), **options)  # type: ignore[arg-type]

    def pages(self) -> int:
        """Return how many pages have been asked for."""
        return sum(asked.path == "/drive/v3/files" for asked in self.google.asked)
