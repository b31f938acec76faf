"""An image server on loopback whose every address is another file: ``/SERIAL/NAME`` is the folder's NAME, varied.

``python -m scripts.ops.stage_c_bench.image_server OWNER_PID FOLDER`` prints its port and ends with its owner.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]


class VaryingImages:
    """The server as its owner sees it: a process of its own, so that its work is not the owner's."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "scripts.ops.stage_c_bench.image_server", str(os.getpid()), str(folder)]
        self._process = subprocess.Popen(
            command, cwd=PROJECT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        self.pid = self._process.pid

    def address(self, serial: int, file: str) -> str:
        """Return where the file is, as picture number ``serial``."""
        return f"{self.url}/{serial}/{file}"

    def stop(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.wait()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes; held back, the second would wait for the first to be acknowledged.
    disable_nagle_algorithm = True
    folder: Path

    def do_GET(self) -> None:
        """Send the picture."""
        from scripts.ops.stage_c_bench.pictures import vary

        serial, _, name = self.path.strip("/").partition("/")
        body = vary((self.folder / Path(name).name).read_bytes(), int(serial))
        self.send_response(200)
        self.send_header("Content-Type", "image/jpeg")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def main(arguments: list[str]) -> int:
    """Serve until the owner ends."""
    owner_pid = int(arguments[0])
    _Handler.folder = Path(arguments[1])
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    while os.getppid() == owner_pid:
        time.sleep(0.5)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
