"""A Google on loopback: Drive's API over a tree that the test makes, its token endpoint, and the host of its images.

It is strict where Google is: a key or token is asked for, an older folder's resource key too, of a folder that is not
to be seen nothing is listed, and a page holds at most a thousand files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

FOLDER = "application/vnd.google-apps.folder"
SHORTCUT = "application/vnd.google-apps.shortcut"
ROOT = "root-folder-0123456789"
API_KEY = "key-that-is-nowhere-told"
TOKEN = "token-that-is-nowhere-told"

File = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]  #: Names in lower case.
    at: float  #: On the monotonic clock.


@dataclass(frozen=True, slots=True)
class Said:
    """One answer."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


def as_json(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Said:
    """Answer with JSON."""
    return Said(status, json.dumps(value).encode(), {"Content-Type": "application/json", **(headers or {})})


def refusal(status: int, reason: str, headers: Mapping[str, str] | None = None) -> Said:
    """Answer as Google's APIs do when they do not want to."""
    error = {"code": status, "message": f"No: {reason}", "errors": [{"domain": "global", "reason": reason}]}
    return as_json({"error": error}, status, headers)


@dataclass
class FakeGoogle:
    """The tree, and what each request is answered; ``before`` may answer in its place."""

    files: dict[str, File] = field(default_factory=dict)
    children: dict[str, list[str]] = field(default_factory=lambda: {ROOT: []})
    many: dict[str, int] = field(default_factory=dict)  #: Folders of so many images, which are made up as asked for.
    resource_keys: dict[str, str] = field(default_factory=dict)  #: What is hidden from whoever does not show it.
    before: Callable[[Asked], Said | None] = lambda asked: None
    image: Callable[[str], Said] = lambda identifier: Said(404)
    page_files: int = 1_000
    asked: list[Asked] = field(default_factory=list)
    url: str = ""

    def __post_init__(self) -> None:
        self.files[ROOT] = {"id": ROOT, "name": "root", "mimeType": FOLDER}
        self._lock = threading.Lock()

    def folder(self, identifier: str, parent: str = ROOT, name: str = "") -> str:
        """Add a folder and return its id."""
        self.children.setdefault(identifier, [])
        return self.add({"id": identifier, "name": name or identifier, "mimeType": FOLDER}, parent)

    def picture(self, number: int, parent: str = ROOT, **fields: Any) -> str:
        """Add an image and return its id."""
        return self.add({**picture(number), **fields}, parent)

    def shortcut(self, identifier: str, target: str, parent: str = ROOT, **details: str) -> str:
        """Add a shortcut to a file or folder and return its id."""
        shown = {"targetId": target, "targetMimeType": self.files[target]["mimeType"], **details}
        return self.add({"id": identifier, "name": identifier, "mimeType": SHORTCUT, "shortcutDetails": shown}, parent)

    def add(self, file: File, parent: str) -> str:
        """Add a file as the API describes it."""
        self.files[file["id"]] = file
        self.children[parent].append(file["id"])
        return str(file["id"])

    def remove(self, identifier: str) -> None:
        """Take a file or folder away."""
        del self.files[identifier]
        for children in self.children.values():
            if identifier in children:
                children.remove(identifier)

    def answer(self, asked: Asked) -> Said:
        """Return the answer to a request."""
        with self._lock:
            self.asked.append(asked)
        if said := self.before(asked):
            return said
        if match := re.fullmatch(r"/d/([\w-]+)=[\w-]+", asked.path):
            return self.image(match[1])
        if asked.path == "/token":
            return as_json({"access_token": TOKEN, "expires_in": 3600})
        if asked.headers.get("x-goog-api-key") != API_KEY and asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return refusal(403, "forbidden")
        if asked.path == "/drive/v3/files":
            return self._page(asked)
        identifier = asked.path.removeprefix("/drive/v3/files/")
        if identifier not in self.files or self._is_hidden(identifier, asked):
            return refusal(404, "notFound")
        return as_json(self.files[identifier])

    def _is_hidden(self, identifier: str, asked: Asked) -> bool:
        shown = dict(pair.split("/") for pair in asked.headers.get("x-goog-drive-resource-keys", "").split(",") if pair)
        return self.resource_keys.get(identifier) != shown.get(identifier)

    def _page(self, asked: Asked) -> Said:
        query = asked.query["q"]
        parent = re.findall(r"'([^']+)' in parents", query)[0]
        since = re.findall(r"modifiedTime > '([^']+)'", query)
        if parent not in self.files or self._is_hidden(parent, asked):
            return as_json({"files": []})
        children = self.children.get(parent, [])
        total = len(children) + self.many.get(parent, 0)
        start = int(asked.query.get("pageToken", "0"))
        end = min(total, start + self.page_files)
        files = [
            self.files[children[n]] if n < len(children) else picture(n - len(children)) for n in range(start, end)
        ]
        if since:
            files = [file for file in files if _is_newer(file, since[0])]
        return as_json({"files": files, **({"nextPageToken": str(end)} if end < total else {})})


def picture(number: int) -> File:
    """Return an image as the API describes it."""
    return {
        "id": f"picture-{number:016}",
        "name": f"Card {number}.png",
        "mimeType": "image/png",
        "size": "1234",
        "md5Checksum": hashlib.md5(str(number).encode()).hexdigest(),
        "sha256Checksum": hashlib.sha256(str(number).encode()).hexdigest(),
        "modifiedTime": "2026-01-01T00:00:00.000Z",
        "createdTime": "2026-01-01T00:00:00.000Z",
        "imageMediaMetadata": {"width": 2176, "height": 2960},
    }


def _is_newer(file: File, since: str) -> bool:
    times = (file.get("modifiedTime", ""), file.get("createdTime", ""))
    return file["mimeType"] in (FOLDER, SHORTCUT) or any(moment > since for moment in times)


@contextlib.contextmanager
def fake_google() -> Iterator[FakeGoogle]:
    """Run a Google for the length of the block."""
    google = FakeGoogle()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            headers = {name.lower(): value for name, value in self.headers.items()}
            self.rfile.read(int(headers.get("content-length", 0)))
            query = dict(urllib.parse.parse_qsl(parts.query))
            said = google.answer(Asked(parts.path, query, headers, time.monotonic()))
            self.send_response(said.status)
            for name, value in {"Content-Length": str(len(said.body)), **said.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(said.body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    google.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.02), daemon=True)
    thread.start()
    try:
        yield google
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
