#!/usr/bin/env python3
"""The project's embedded PostgreSQL: start, stop, status, url, and run.

Its data lives in ``$CARDPICKER_DATA_DIR/postgres`` (``.local/postgres``). Standard library only: any Python from 3.11 runs it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.ops.embedded.errors import EmbeddedServerError
from scripts.ops.embedded.keeper import kept_server, start_kept
from scripts.ops.embedded.place import Place, data_dir
from scripts.ops.embedded.processes import is_alive, run_in_foreground
from scripts.ops.embedded.server import start, status, stop

NOT_RUNNING = 3


def main(arguments: list[str]) -> int:
    """Do what the command line asks; return 0, 1 for an error, 3 for a server that does not run, or what a command returned."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.do(options))
    except EmbeddedServerError as error:
        print(f"postgres.py: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="The project's embedded PostgreSQL.")
    commands = parser.add_subparsers(required=True, metavar="start|stop|status|url|run")
    starting = commands.add_parser("start", help="start the server and print its URL; it runs until stop")
    starting.add_argument("--with-parent", type=int, metavar="PID", help="stop the server when process PID ends")
    starting.set_defaults(do=_start)
    commands.add_parser("stop", help="stop the server; its data stays").set_defaults(do=_stop)
    commands.add_parser("status", help="say whether it runs; exit 0 if it does, 3 if not").set_defaults(do=_status)
    commands.add_parser("url", help="print the URL of the running server; exit 3 if none runs").set_defaults(do=_url)
    running = commands.add_parser("run", help="start the server, run a command, stop what was started")
    running.add_argument("--ephemeral", action="store_true", help="a server of its own on data that is thrown away")
    running.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the command and its arguments"
    )
    running.set_defaults(do=_run)
    return parser


def _start(options: argparse.Namespace) -> int:
    if options.with_parent is None:
        print(start(Place.below(data_dir())).url)
        return 0
    if not is_alive(options.with_parent):
        raise EmbeddedServerError(f"there is no process {options.with_parent} to stop the server with")
    print(start_kept(data_dir(), owner_pid=options.with_parent).url)
    return 0


def _stop(options: argparse.Namespace) -> int:
    print("stopped" if stop(Place.below(data_dir())) else "not running")
    return 0


def _status(options: argparse.Namespace) -> int:
    place = Place.below(data_dir())
    running = status(place)
    if running is None:
        print(f"not running (data in {place.data})" if place.data.exists() else "not running (no data yet)")
        return NOT_RUNNING
    print(f"running on 127.0.0.1:{running.port}, process {running.pid}, data in {place.data}")
    return 0


def _url(options: argparse.Namespace) -> int:
    running = status(Place.below(data_dir()))
    if running is None:
        print("not running: run scripts/ops/postgres.py start", file=sys.stderr)
        return NOT_RUNNING
    print(running.url)
    return 0


def _run(options: argparse.Namespace) -> int:
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise EmbeddedServerError("run needs a command: scripts/ops/postgres.py run -- COMMAND")
    with kept_server(None if options.ephemeral else data_dir()) as kept:
        try:
            return run_in_foreground(command, os.environ | {"CARDPICKER_DATABASE_URL": kept.url})
        except OSError as error:
            raise EmbeddedServerError(f"{command[0]} cannot be run: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
