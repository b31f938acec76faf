"""Choose the tests' database server, run a command with it, and stop what was started.

The choice is made before pytest starts, because pytest-django reads the settings before any conftest.
In this order: ``CARDPICKER_DATABASE_URL``, a container where a Docker engine answers, an embedded server on temporary data.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.ops.embedded.errors import EmbeddedServerError
from scripts.ops.embedded.keeper import kept_server
from scripts.ops.embedded.processes import run_in_foreground

IMAGE = "postgres:15"
ENGINE_TIMEOUT_S = 5


@contextlib.contextmanager
def database_server() -> Iterator[str]:
    """Have a server for the length of the block; yields its URL."""
    if url := os.environ.get("CARDPICKER_DATABASE_URL"):
        print("Tests use the server of CARDPICKER_DATABASE_URL.", flush=True)
        yield url
        return
    with contextlib.ExitStack() as stack:
        url = _container(stack) if _docker_answers() else None
        if url is None:
            url = stack.enter_context(kept_server(None)).url
            print("Tests use an embedded PostgreSQL on temporary data.", flush=True)
        yield url


def _docker_answers() -> bool:
    import docker

    try:
        client = docker.from_env(timeout=ENGINE_TIMEOUT_S)
    except docker.errors.DockerException:
        return False
    with contextlib.closing(client):
        try:
            return bool(client.ping())
        except (docker.errors.DockerException, OSError):
            return False


def _container(stack: contextlib.ExitStack) -> str | None:
    """Start a container, or say why there is none although an engine answers."""
    from testcontainers.community.postgres import PostgresContainer

    container = PostgresContainer(IMAGE, driver=None)
    try:
        stack.enter_context(container)
    except Exception as error:  # The engine, the network and the image each fail in a way of their own.
        reason = str(error).strip().splitlines() or [type(error).__name__]
        print(f"A Docker engine answers but {IMAGE} does not start: {reason[0]}", file=sys.stderr)
        return None
    print(f"Tests use a container of {IMAGE}.", flush=True)
    return str(container.get_connection_url()).replace("postgresql://", "postgres://", 1)


def main(command: list[str]) -> int:
    """Run ``command`` with ``CARDPICKER_DATABASE_URL`` set and return its exit code."""
    try:
        with database_server() as url:
            return run_in_foreground(command, os.environ | {"CARDPICKER_DATABASE_URL": url})
    except EmbeddedServerError as error:
        print(f"No database for the tests: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
