"""Everything that a drill runs on: database, catalog, cluster, cron. Built once, torn down however the drill ends."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from scripts.ops.drill.cluster import Cluster, Cron
from scripts.ops.drill.database import DrillDatabase, make_folder
from scripts.ops.drill.image_server import ImageServer
from scripts.ops.drill.reads import ReadCounter
from scripts.ops.drill.small_disk import SmallDisk

BATCH = 10
SLOTS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """How long things take in a drill: real times, or short ones for a quick look."""

    stop_s: float  #: How long a stopped process stays stopped, and a stopped database stays away.
    lease_s: int  #: Shorter than ``stop_s``, so that a stopped worker comes back to a lease that it has lost.
    sweep_every_s: float
    settle_s: float  #: Within which everything is settled.
    recover_s: float  #: Within which the cluster works again without the sweep.


FULL = Clocks(stop_s=20, lease_s=10, sweep_every_s=5, settle_s=180, recover_s=60)
QUICK = Clocks(stop_s=7, lease_s=5, sweep_every_s=3, settle_s=120, recover_s=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rig:
    """What faults are done to."""

    folder: Path
    clocks: Clocks
    database: DrillDatabase
    cluster: Cluster
    cron: Cron
    web: ImageServer
    reads: ReadCounter
    disk: SmallDisk | None  #: The database's, where it has one of its own.

    @property
    def images(self) -> Path:
        """The folder of the catalog's images."""
        return self.folder / "images"

    @property
    def sessions(self) -> list[int]:
        """Every session that the drill has started."""
        return self.cluster.sessions + self.cron.sessions


def drill_environment(folder: Path, clocks: Clocks) -> dict[str, str]:
    """Return the environment of everything in the drill: its own database, streaming on, whatever the host's load.

    The server is found through the data folder, since it may come back on another port.
    """
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("STAGE_", "Q_", "CARDPICKER_"))
    }
    return environment | {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "CARDPICKER_DATA_DIR": str(folder),
        "STAGE_E_STREAMING_ENABLED": "1",
        "STAGE_E_HOST_LOAD_CEILING": "10000",
        "STAGE_E_MICRO_BATCH_SIZE": str(BATCH),
        "STAGE_E_MAX_CONCURRENT_DISPATCHES": str(SLOTS),
        "STAGE_E_LEASE_S": str(clocks.lease_s),
        # An image server that fails is one of the faults; that a rate of failures trips is another story.
        "STAGE_E_FETCH_FAILURE_RATE_CEILING": "1",
        "STAGE_C_FETCH_DEADLINE_S": "3",
        # The drill itself says which cards its sources have.
        "SOURCES_SYNC_HOURS": "0",
        "PYTHONUNBUFFERED": "1",
    }


@contextlib.contextmanager
def built_rig(
    clocks: Clocks, *, keep: bool, small_disk: bool = False, changes: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Rig]:
    """Start a database and set Django up on it; the cluster is started by whoever supervises it.

    Args:
        keep: leave the logs where they are at the end.
        small_disk: give the database a disk of its own that can be filled.
        changes: settings other than the drill's.
    """
    folder = make_folder()
    environment = {**drill_environment(folder, clocks), **changes}
    database = DrillDatabase(folder)
    disk = SmallDisk(database.place.home) if small_disk else None
    (folder / "images").mkdir()
    cluster = Cluster(folder / "cluster.log", environment)
    cron = Cron(folder / "sweep.log", environment, clocks.sweep_every_s)
    web = ImageServer(folder / "images", folder / "web-mode")
    try:
        database.start()
        _set_up_django(environment)
        yield Rig(
            folder=folder,
            clocks=clocks,
            database=database,
            cluster=cluster,
            cron=cron,
            web=web,
            reads=ReadCounter(folder / "images"),
            disk=disk,
        )
    finally:
        cluster.kill()
        cron.finish(0)
        web.stop()
        database.remove()
        if disk is not None:
            disk.remove()
        if keep:
            print(f"logs: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _set_up_django(environment: dict[str, str]) -> None:
    """Become a Django process on the drill's database, with every table made."""
    import django
    from django.core.management import call_command

    os.environ.clear()
    os.environ.update(environment)
    django.setup()
    logging.getLogger("django-q").setLevel(logging.WARNING)
    call_command("migrate", verbosity=0)
