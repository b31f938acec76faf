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

    def __repr__(self) -> str:
        return "SourcesSettings(…)"
