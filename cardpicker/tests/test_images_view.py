"""The thumbnail view: pictures of our own making, or a picture that says why there is none."""

from __future__ import annotations

import dataclasses
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from PIL import Image
from pytest_django import Settings

from cardpicker.models import Card, Source
from cardpicker.operations.admin.thumbnails import thumbnail
from cardpicker.operations.images import CannotShowError, local_file
from cardpicker.sources import registry
from cardpicker.sources.kinds import ListedCard
from cardpicker.tests.admin_rows import make_card, make_source, make_staff, superuser_client, write_image

pytestmark = pytest.mark.django_db

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"></svg>'
HTML = b"<!doctype html><script>alert(1)</script>"


@pytest.fixture
def admin_client(db: None) -> Client:
    """A superuser's browser."""
    return superuser_client()


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """A source over an empty folder."""
    (tmp_path / "cards").mkdir()
    return make_source(tmp_path / "cards")


def fetch(client: Client, card: Card, **headers: str) -> Any:
    """Get a card's thumbnail."""
    return client.get(reverse("card-thumbnail", args=[card.pk]), headers=headers)


def picture(response: Any) -> Image.Image:
    """Return the picture of a response that must be a JPEG."""
    assert response.status_code == 200
    assert response["Content-Type"] == "image/jpeg"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"] == "default-src 'none'"
    image = Image.open(io.BytesIO(response.content))
    assert image.format == "JPEG"
    return image


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp"])
def test_thumbnail_is_a_small_jpeg(admin_client: Client, source: Source, name: str) -> None:
    """Whatever the file's type, the picture is a JPEG of at most 300 px."""
    write_image(Path(source.location) / name, (630, 880))

    image = picture(fetch(admin_client, make_card(source, identifier=name)))

    assert max(image.size) == 300
    assert image.size[0] / image.size[1] == pytest.approx(630 / 880, abs=0.01)


def test_browser_keeps_a_thumbnail_until_the_image_changes(admin_client: Client, source: Source) -> None:
    """The same tag is answered with 304, another image version with the picture."""
    write_image(Path(source.location) / "a.jpg")
    card = make_card(source, identifier="a.jpg")
    tag = fetch(admin_client, card)["ETag"]

    again = fetch(admin_client, card, if_none_match=tag)
    Card.objects.filter(pk=card.pk).update(image_version="another")
    changed = fetch(admin_client, card, if_none_match=tag)

    assert (again.status_code, again.content) == (304, b"")
    assert "private" in again["Cache-Control"]
    assert changed.status_code == 200
    assert changed["ETag"] != tag


@pytest.mark.parametrize("body", [b"", b"text", SVG, HTML, b"\x89PNG\r\n\x1a\n" + b"\0" * 50, b"\xff\xd8\xff\xe0" * 40])
def test_what_is_no_image_is_shown_as_a_placeholder(admin_client: Client, source: Source, body: bytes) -> None:
    """Bytes that are no picture never reach the browser, whatever the file is called, and nothing is remembered."""
    (Path(source.location) / "a.png").write_bytes(body)

    response = fetch(admin_client, make_card(source, identifier="a.png"))

    picture(response)
    assert response["Cache-Control"] == "no-store"
    assert "ETag" not in response
    assert b"script" not in response.content


def test_truncated_image_is_a_placeholder(admin_client: Client, source: Source) -> None:
    """Half a file is not shown as half a picture."""
    path = Path(source.location) / "a.png"
    Image.effect_noise((600, 800), 80).save(path)
    path.write_bytes(path.read_bytes()[:20_000])

    assert fetch(admin_client, make_card(source, identifier="a.png"))["Cache-Control"] == "no-store"


def test_huge_picture_is_not_decoded(admin_client: Client, source: Source) -> None:
    """A small file that unpacks to 400 megapixels is refused by its header."""
    Image.new("1", (20_000, 20_000)).save(Path(source.location) / "a.png")

    assert fetch(admin_client, make_card(source, identifier="a.png"))["Cache-Control"] == "no-store"


def test_missing_file_and_unknown_kind_are_placeholders(admin_client: Client, source: Source) -> None:
    """Each is a picture that says so, never an error."""
    odd = Source.objects.create(key="odd", name="Odd", kind="carrier_pigeon", location="x")

    for card in (make_card(source), make_card(odd)):
        assert fetch(admin_client, card)["Cache-Control"] == "no-store"


def test_file_that_is_too_large_is_not_shown(admin_client: Client, source: Source, settings: Settings) -> None:
    """A sound picture with too much behind it is refused, not cut."""
    path = Path(source.location) / "large.png"
    write_image(path)
    settings.STAGE_C = dataclasses.replace(settings.STAGE_C, fetch_max_bytes=path.stat().st_size + 100)
    card = make_card(source, identifier="large.png")
    assert fetch(admin_client, card)["Cache-Control"] != "no-store"
    path.write_bytes(path.read_bytes() + bytes(10_000))

    assert fetch(admin_client, card)["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "identifier", ["../secret.png", "/etc/hostname", "sub/../../secret.png", "link.png", "%2e%2e/secret.png", "..", "."]
)
def test_nothing_outside_the_sources_folder_is_read(
    admin_client: Client, source: Source, tmp_path: Path, identifier: str
) -> None:
    """A path or a link that leads out of the folder is refused, though a picture lies there."""
    write_image(tmp_path / "secret.png")
    os.symlink(tmp_path / "secret.png", Path(source.location) / "link.png")
    card = make_card(source, identifier=identifier)

    response = fetch(admin_client, card)

    picture(response)
    assert response["Cache-Control"] == "no-store"


class TrustfulKind:
    """A kind of source that lets any identifier through."""

    key = "local_folder"

    def list_cards(self, source: Source) -> Iterator[ListedCard]:
        """List nothing."""
        return iter(())

    def image_location(self, source_location: str, identifier: str) -> str:
        """Return whatever the identifier says."""
        return f"file://{source_location}/{identifier}"


@pytest.mark.parametrize("identifier", ["../secret.png", "link.png", "%2e%2e/secret.png"])
def test_folder_is_kept_to_whatever_the_kind_of_source_allows(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identifier: str
) -> None:
    """The view checks the place itself."""
    write_image(tmp_path / "secret.png")
    write_image(tmp_path / "cards" / "fine.png")
    os.symlink(tmp_path / "secret.png", tmp_path / "cards" / "link.png")
    monkeypatch.setattr(registry, "KINDS", (TrustfulKind(),))
    assert local_file(make_card(source, identifier="fine.png")).is_file()

    with pytest.raises(CannotShowError):
        local_file(make_card(source, identifier=identifier))


def test_picture_elsewhere_is_never_fetched(
    admin_client: Client, source: Source, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """A card at an HTTP address has a placeholder; only where the image CDN serves it does the page point there."""
    monkeypatch.setattr(
        TrustfulKind, "image_location", lambda *_: "https://cdn.example/images/google_drive/full/abc.jpg?dpi=250"
    )
    monkeypatch.setattr(registry, "KINDS", (TrustfulKind(),))
    card = make_card(source)

    assert fetch(admin_client, card)["Cache-Control"] == "no-store"
    assert "cdn.example" not in thumbnail(card)
    settings.STAGE_C = dataclasses.replace(settings.STAGE_C, image_worker_url="https://cdn.example/")
    assert 'src="https://cdn.example/images/google_drive/small/abc.jpg"' in thumbnail(card)


def test_pipe_is_not_waited_for(admin_client: Client, source: Source) -> None:
    """A named pipe where the image should be is refused instead of read for ever."""
    os.mkfifo(Path(source.location) / "a.png")

    assert fetch(admin_client, make_card(source, identifier="a.png"))["Cache-Control"] == "no-store"


def test_only_staff_who_may_see_cards_get_pictures(client: Client, source: Source) -> None:
    """Strangers are sent to the login, staff without the permission are refused, and nothing can be posted."""
    write_image(Path(source.location) / "a.jpg")
    card = make_card(source, identifier="a.jpg")
    address = reverse("card-thumbnail", args=[card.pk])

    assert "/login/" in client.get(address)["Location"]
    client.force_login(make_staff("new"))
    assert client.get(address).status_code == 403
    client.force_login(make_staff("viewer", "view_card"))
    assert client.get(address).status_code == 200
    assert client.post(address).status_code == 405


def test_unknown_card_is_not_found(admin_client: Client) -> None:
    """A card that is not there is a 404, whatever the number."""
    for number in (1, 10**30):
        assert admin_client.get(f"/images/cards/{number}/thumbnail").status_code == 404


def test_page_shows_our_own_thumbnail_without_an_image_cdn(source: Source) -> None:
    """Without IMAGE_WORKER_URL no page points to another host, and a name is escaped in the markup."""
    card = make_card(source, name='"><script>')

    markup = thumbnail(card)

    assert settings.STAGE_C.image_worker_url == ""
    assert f'src="{reverse("card-thumbnail", args=[card.pk])}' in markup
    assert "<script>" not in markup
