"""The image CDN's Worker in its real runtime on loopback, asking an image host of the test's."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from cardpicker.tests.cluster import eventually

WORKER = Path(settings.BASE_DIR) / "image-cdn"


def missing() -> str:
    """Return why the Worker cannot run here, empty when it can; its packages are installed on first use."""
    if shutil.which("node") is None:
        return "the image CDN needs Node 20 or newer"
    script = Path(settings.BASE_DIR) / "scripts" / "ops" / "image_cdn_test.sh"
    installed = subprocess.run([script, "--install"], capture_output=True, text=True, check=False)
    return "" if installed.returncode == 0 else installed.stderr.strip()


@contextlib.contextmanager
def running_worker(upstream: str, state: Path) -> Iterator[str]:
    """Run the Worker for the length of the block and return its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    url = f"http://127.0.0.1:{port}"
    command = [
        *(str(WORKER / "node_modules" / ".bin" / "wrangler"), "dev", "--ip", "127.0.0.1", "--port", str(port)),
        *("--inspector-port", "0", "--persist-to", str(state), "--show-interactive-dev-session=false"),
        *("--var", f"UPSTREAM_ORIGIN:{upstream}", "--var", f"ALLOWED_UPSTREAM_ORIGINS:{upstream}"),
    ]
    environment = {**os.environ, "WRANGLER_SEND_METRICS": "false", "CI": "1"}
    with (state / "wrangler.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=WORKER, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            eventually(lambda: _is_healthy(url) or process.poll() is not None, "the Worker answers")
            assert process.poll() is None, (state / "wrangler.log").read_text(encoding="utf-8")[-3_000:]
            yield url
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
