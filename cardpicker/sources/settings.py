"""Credentials of the sources, read once from the environment; never logged, never stored."""

from __future__ import annotations

from dataclasses import dataclass

from cardpicker.environment import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcesSettings:
    """What reading sources needs beside their addresses."""

    google_drive_api_key: str = setting(
        "GOOGLE_DRIVE_API_KEY", "", "API key of Google Drive, for public folders; empty: no such source can be listed."
    )
    google_service_account_file: str = setting(
        "GOOGLE_SERVICE_ACCOUNT_FILE",
        "",
        "JSON key file of a Google service account, for folders shared with it; used instead of the API key.",
    )
    sync_hours: float = setting(
        "SOURCES_SYNC_HOURS",
        24.0,
        "Hours between the syncs of a source that a running cluster makes by itself; 0: none.",
        low=0,
        high=8760,
    )

    def __repr__(self) -> str:
        return "SourcesSettings(…)"
