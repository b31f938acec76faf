"""The drill's own image server, on loopback: serves a folder, and misbehaves as a file beside it says.

``python -m scripts.ops.drill.image_server OWNER_PID FOLDER MODE_FILE`` prints its port and ends with its owner.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
STALL_S = 120.0


class Mode(StrEnum):
    """How the server answers."""

    WELL = "well"
    DOWN = "down"  #: It hangs up on everybody.
    STALLING = "stalling"  #: Half an image, and then nothing.
    TRUNCATING = "truncating"  #: Half an image, and the end.
    BUSY = "429"
    REFUSING = "403"


class ImageServer:
    """The server as the drill sees it: a process of its own, so that the drill has no threads."""

    def __init__(self, folder: Path, mode_file: Path) -> None:
        self._mode_file = mode_file
        self.behave(Mode.WELL)
        command = [
            sys.executable,
            "-m",
            "scripts.ops.drill.image_server",
            str(os.getpid()),
            str(folder),
            str(mode_file),
        ]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def behave(self, mode: Mode) -> None:
        """Answer in another way from now on."""
        draft = self._mode_file.with_suffix(".new")
        draft.write_text(mode)
        draft.replace(self._mode_file)

    def stop(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()


class _Handler(BaseHTTPRequestHandler):
    folder: Path
    mode_file: Path

    def do_GET(self) -> None:
        """Answer as the mode says."""
        mode = Mode(self.mode_file.read_text())
        if mode is Mode.DOWN:
            self.close_connection = True
            return
        if mode in (Mode.BUSY, Mode.REFUSING):
            self.send_response(int(mode))
            self.send_header("Content-Length", "0")
            if mode is Mode.BUSY:
                self.send_header("Retry-After", "2")
            self.end_headers()
            return
        body = (self.folder / Path(self.path).name).read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "image/jpeg")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        whole = mode is Mode.WELL
        with contextlib.suppress(OSError):
            self.wfile.write(body if whole else body[: len(body) // 2])
            self.wfile.flush()
            if mode is Mode.STALLING:
                time.sleep(STALL_S)
        self.close_connection = not whole

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main(arguments: list[str]) -> int:
    """Serve until the owner ends."""
    owner_pid = int(arguments[0])
    _Handler.folder, _Handler.mode_file = Path(arguments[1]), Path(arguments[2])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    while os.getppid() == owner_pid:
        time.sleep(0.5)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
