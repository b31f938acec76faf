"""The whole pipeline over TLS: a connection that two processes share is garbled there, and merely unlucky without."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.db import connection

from cardpicker.models import CardPrintingTag, CardWork, ImageEvidence, PilotRunLedger, RunStatus
from cardpicker.tests.cluster import eventually, running_cluster
from cardpicker.tests.own_server import OwnServer, catalog_on, own_server, server_with_tls
from cardpicker.tests.plain_cards import save_plain_cards
from cardpicker.tests.stage_e_support import make_printing, make_source

pytestmark = pytest.mark.django_db(transaction=True)

CARDS = 200
#: What either side says of a record that it cannot read, and of a connection that somebody else has closed.
_GARBLED = re.compile(
    r"SSL (error|SYSCALL|connection)|decryption|bad record|bad length|unexpected eof|protocol synchronization"
    r"|unexpected EOF on client|could not (receive|send)|lost synchronization|server closed the connection",
    re.IGNORECASE,
)


@pytest.mark.timeout(120)
def test_the_pipeline_over_tls_is_as_without(
    tmp_path: Path, settings: Any, record_property: Callable[[str, object], None]
) -> None:
    """Two workers with four forked processes each do 200 cards once, and neither end ever sees a garbled record."""
    settings.STAGE_E = dataclasses.replace(settings.STAGE_E, streaming_enabled=True)
    log = tmp_path / "cluster.log"
    with own_server(server_with_tls(), tls=True) as server, catalog_on(server) as url:
        source = make_source(tmp_path / "cards")
        make_printing("Opt", "xln", "65")
        # Forked while the worker's own sessions are open: what a child inherits it could spoil.
        extra = {"CARDPICKER_DATABASE_URL": url, "STAGE_C_START_METHOD": "fork", "STAGE_C_COMPUTE_WORKERS": "4"}
        with running_cluster(log, **extra):
            save_plain_cards(source, CARDS)
            encrypted = eventually(_sessions_of_a_slot, "a slot to be held")
            eventually(_all_is_settled, "the cards to be settled")
            # Before the cluster is killed, which ends its sessions as no client of its own accord does.
            said = server.log.read_text()
        runs = list(PilotRunLedger.objects.all())
        assert {run.status for run in runs} == {RunStatus.COMPLETED}
        assert set(CardWork.objects.values_list("due_at", "lease_owner", "quarantined_at")) == {(None, None, None)}
        assert sum(run.stage_c_stored for run in runs) == CARDS == ImageEvidence.objects.count()
        assert sum(run.stage_d_votes for run in runs) == CardPrintingTag.objects.count()
        assert _is_refused_without_tls(server)

    assert encrypted == {"cardpicker": True, "cardpicker-slot": True}
    for name, text in (("server", said), ("cluster", log.read_text())):
        assert [line for line in text.splitlines() if _GARBLED.search(line)] == [], name
    opened = said.count("SSL enabled")
    assert opened == said.count("connection authorized") > len(runs)
    record_property("sessions_over_tls", opened)
    print(f"\n{CARDS} cards, {len(runs)} batches, {opened} sessions over TLS, no error at either end")


def _sessions_of_a_slot() -> dict[str, bool]:
    """Return whether the sessions of each name are encrypted, once there is a slot's among them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT application_name, bool_and(ssl) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)"
            " WHERE application_name LIKE 'cardpicker%' AND application_name <> 'cardpicker-sweep' GROUP BY 1"
        )
        found = dict(cursor.fetchall())
    return found if "cardpicker-slot" in found else {}


def _all_is_settled() -> bool:
    if CardWork.objects.exclude(due_at__isnull=True, lease_owner__isnull=True).exists():
        return False
    return not PilotRunLedger.objects.filter(status=RunStatus.RUNNING).exists()


def _is_refused_without_tls(server: OwnServer) -> bool:
    with contextlib.suppress(psycopg2.OperationalError):
        psycopg2.connect(server.url("postgres").replace("require", "disable")).close()
        return False
    return True
