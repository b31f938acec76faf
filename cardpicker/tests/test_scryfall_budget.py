"""The import of printings asks Scryfall under the budget that everybody shares."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from cardpicker.models import FetchBudget
from cardpicker.stage_c.fetch import destinations
from cardpicker.stage_c.fetch.destinations import destination_of, rate_per_s
from cardpicker.stage_c.fetch.limiter import SCRYFALL_API, SCRYFALL_IMAGE, slow_down, take
from cardpicker.stage_c.fetch.waiting import BudgetSpentError, await_permit
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server

pytestmark = pytest.mark.django_db(transaction=True)

BULK_URL = "https://data.scryfall.io/default-cards/default-cards-20260101.json"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MisbehavingServer]:
    """A server on loopback that stands in Scryfall's place."""
    monkeypatch.setitem(destinations.DESTINATIONS, "127.0.0.1", SCRYFALL_API)
    with misbehaving_server() as running:
        yield running


def run_import(location: str) -> None:
    call_command("import_canonical_card_data", "--from", location, stdout=StringIO(), stderr=StringIO())


@pytest.mark.parametrize(
    ("host", "destination", "rate"),
    [
        ("api.scryfall.com", SCRYFALL_API, 2.0),
        ("data.scryfall.io", SCRYFALL_API, 2.0),
        ("cards.scryfall.io", SCRYFALL_IMAGE, 10.0),
        ("scryfall.io.evil.example", "", 7.0),
    ],
)
def test_each_of_scryfalls_hosts_has_its_rate(host: str, destination: str, rate: float) -> None:
    """Bulk files and questions go slowly, images faster."""
    assert destination_of(host) == destination
    assert rate_per_s(destination, StageCSettings()) == rate


def test_permits_of_the_api_are_half_a_second_apart() -> None:
    """Whoever asks, from whichever process."""
    waits: list[float] = []
    for _ in range(3):
        await_permit(BULK_URL, StageCSettings(), sleep=waits.append)

    assert waits == [pytest.approx(0.5 * place, abs=0.2) for place in range(3)]
    assert FetchBudget.objects.get().destination == SCRYFALL_API


def test_a_file_and_a_mirror_draw_on_nothing(tmp_path: Path) -> None:
    """Only Scryfall's own hosts are Scryfall's."""
    for location in (str(tmp_path), "https://mirror.example/default-cards.json", "http://[bad"):
        await_permit(location, StageCSettings(), sleep=lambda _: pytest.fail("it waited"))
    assert not FetchBudget.objects.exists()


def test_a_spent_budget_is_told_instead_of_waited_for() -> None:
    """An import that Scryfall does not want now is for later, and asks nothing."""
    slow_down(SCRYFALL_API, 900.0)

    with pytest.raises(BudgetSpentError, match=r"SCRYFALL_API asked for patience: try again in \d+ s"):
        await_permit(BULK_URL, StageCSettings())
    with pytest.raises(CommandError, match="asked for patience"):
        run_import(BULK_URL)


def test_pressure_that_the_import_meets_is_everybodys(server: MisbehavingServer) -> None:
    """A 429 widens the shared interval and holds everybody for as long as was asked."""
    server.default = on.answer(429, b"slow down", {"Retry-After": "120"})

    with pytest.raises(CommandError, match="answered 429"):
        run_import(server.url("/bulk.json"))

    budget = FetchBudget.objects.get(destination=SCRYFALL_API)
    assert budget.widening > 1
    assert budget.last_retry_after_s == 120
    assert take(SCRYFALL_API, 1, 2.0, max_wait_s=60.0).waits_s == ()
    with pytest.raises(CommandError, match="asked for patience"):
        run_import(server.url("/bulk.json"))
    assert server.connections == 1


def test_other_errors_widen_nothing(server: MisbehavingServer) -> None:
    """A wrong address is nobody's pressure."""
    with pytest.raises(CommandError, match="answered 404"):
        run_import(server.url("/bulk.json"))

    assert FetchBudget.objects.get(destination=SCRYFALL_API).widening == 1
