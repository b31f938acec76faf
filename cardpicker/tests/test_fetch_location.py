"""Where images are fetched from, and what those places may reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from cardpicker.models import Card, Source
from cardpicker.sources import registry
from cardpicker.sources.kinds import ListedCard, ListingProblem
from cardpicker.stage_c.fetch.fetcher import Trust
from cardpicker.stage_c.fetch.limiter import GOOGLE_IMAGE
from cardpicker.stage_c.fetch.location import ImagePlace, image_place
from cardpicker.stage_c.outcomes import Failed, Unusable, UnusableKind
from cardpicker.stage_c.settings import StageCSettings
from cardpicker.tests import misbehaving_server as on
from cardpicker.tests.misbehaving_server import MisbehavingServer, misbehaving_server
from cardpicker.tests.stage_c_jobs import image
from cardpicker.tests.stage_c_rig import Recorder

SETTINGS = StageCSettings(image_worker_url="https://cdn.example/", image_dpi=300)
DRIVE_ID = "1AbC-dEf_0123456789012345678901234"


class Links:
    """A kind of source whose identifiers are URLs, as strangers wrote them."""

    key = "links"

    def list_cards(self, source: Source) -> Iterable[ListedCard | ListingProblem]:
        """List nothing."""
        return ()

    def image_location(self, source_location: str, identifier: str) -> str:
        """Return the identifier."""
        return identifier


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "KINDS", (Links(), *registry.KINDS))


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with misbehaving_server() as running:
        yield running


def test_a_local_file_is_confined_to_its_folder(tmp_path: Path) -> None:
    """The source's folder is what the fetch may read."""
    (tmp_path / "a b.png").write_bytes(b"x")

    place = image_place("local_folder", str(tmp_path), "a b.png", SETTINGS)

    assert place == ImagePlace(location=f"{tmp_path.as_uri()}/a%20b.png", trust=Trust(folder=str(tmp_path)))


def test_a_drive_file_comes_through_the_cdn_and_its_budget() -> None:
    """The rendition's bytes are not the listed file's, so its checksums do not apply."""
    place = image_place("google_drive", "folder", DRIVE_ID, SETTINGS)

    assert isinstance(place, ImagePlace)
    assert place.location == f"https://cdn.example/images/google_drive/full/{DRIVE_ID}.jpg?dpi=300&jpgQuality=95"
    assert place.destination == GOOGLE_IMAGE
    assert not place.is_original


def test_a_resource_key_is_shown_to_the_cdn() -> None:
    """Without it an older file is refused as if it were gone."""
    place = image_place("google_drive", "folder", DRIVE_ID, SETTINGS, "0-key")

    assert isinstance(place, ImagePlace)
    assert place.location.endswith("&resourceKey=0-key")


def test_what_is_no_resource_key_gets_into_no_address() -> None:
    """However it got into the database."""
    place = image_place("google_drive", "folder", DRIVE_ID, SETTINGS, "0-key&dpi=9")

    assert isinstance(place, ImagePlace)
    assert "0-key" not in place.location


@pytest.mark.parametrize(("host", "destination"), [("lh3.googleusercontent.com", GOOGLE_IMAGE), ("images.example", "")])
def test_an_image_of_a_manifest_draws_on_the_budget_of_its_host(host: str, destination: str) -> None:
    """Its checksum holds, since it is the file itself; private addresses are the manifest's own host's only."""
    settings = StageCSettings(redirect_hosts="cdn.example")
    place = image_place("http_manifest", "http://10.0.0.1/list.csv", f"https://{host}/d/1", settings)

    assert isinstance(place, ImagePlace)
    assert (place.destination, place.is_original) == (destination, True)
    assert place.trust.private_hosts == {"10.0.0.1"}
    assert "cdn.example" in place.trust.redirect_hosts


def test_an_escape_is_the_cards_fault_and_an_unknown_kind_the_installations(tmp_path: Path) -> None:
    """The first never heals by itself, the second does with the next release."""
    escape = image_place("local_folder", str(tmp_path), "../x.png", SETTINGS)
    unknown = image_place("carrier_pigeon", "x", "y", SETTINGS)

    assert isinstance(escape, Unusable)
    assert escape.kind is UnusableKind.BAD_IDENTIFIER
    assert isinstance(unknown, Failed)


@pytest.mark.django_db
@pytest.mark.usefixtures("links")
@pytest.mark.parametrize(("own_host", "outcome"), [("127.0.0.1", "Stored"), ("listing.example", "Unusable")])
def test_a_link_inside_is_followed_only_for_a_source_inside(
    server: MisbehavingServer, own_host: str, outcome: str
) -> None:
    """A listing from the internet cannot make this machine fetch from its own network."""
    server.routes["/card.png"] = on.answer(200, image(text="1"))
    source = Source.objects.create(key="links", kind="links", location=f"http://{own_host}/list.csv")
    card = Card.objects.create(source=source, identifier=server.url("/card.png"), name="A", image_version="1")
    recorder = Recorder()

    recorder.run([card])

    assert recorder.names() == {card.pk: outcome}
    assert server.connections == (1 if outcome == "Stored" else 0)
