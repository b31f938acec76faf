"""Kind google_drive when Google does not answer as one would like: nothing is lost by it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from cardpicker.models import Card, CardPrintingTag, ImageEvidence, VoteSource
from cardpicker.sources import registry
from cardpicker.sources.drive_auth import ApiKey, ServiceAccount, credential_of
from cardpicker.sources.errors import ListingError
from cardpicker.sources.settings import SourcesSettings
from cardpicker.tests.drive_rig import DriveRig
from cardpicker.tests.fake_google import API_KEY, ROOT, TOKEN, Asked, Said, as_json, fake_google, refusal

pytestmark = pytest.mark.django_db

SUB = "sub-folder-a-0001"


@pytest.fixture
def drive(monkeypatch: pytest.MonkeyPatch) -> Iterator[DriveRig]:
    """A drive of 20 cards in the root and 10 in a sub-folder, all of them read and voted on."""
    with fake_google() as google:
        rig = DriveRig(google)
        monkeypatch.setattr(registry, "KINDS", (rig.kind,))
        google.folder(SUB)
        for number in range(30):
            google.picture(number, ROOT if number < 20 else SUB)
        rig.sync()
        cards = list(Card.objects.all())
        ImageEvidence.objects.bulk_create(
            ImageEvidence(card=card, image_version=card.image_version, image_sha256="0" * 64, manifest="m")
            for card in cards
        )
        CardPrintingTag.objects.bulk_create(
            CardPrintingTag(card=card, is_no_match=True, anonymous_id="x", source=VoteSource.USER) for card in cards
        )
        yield rig


def nothing_is_lost() -> bool:
    """Whether every card is there with its evidence and its vote."""
    present = Card.objects.present().count()
    return present == ImageEvidence.objects.current("m").count() == CardPrintingTag.objects.count() == 30


def on_pages_of(folder: str, said: Said) -> Callable[[Asked], Said | None]:
    """Answer so when a page of ``folder`` is asked for."""
    return lambda asked: said if f"'{folder}' in parents" in asked.query.get("q", "") else None


@pytest.mark.parametrize(
    "said",
    [
        refusal(403, "userRateLimitExceeded"),
        refusal(403, "rateLimitExceeded"),
        refusal(403, "dailyLimitExceeded"),
        refusal(403, "accessNotConfigured"),
        refusal(429, "rateLimitExceeded"),
        refusal(400, "invalid"),
        refusal(401, "authError"),
        refusal(500, "backendError"),
        Said(503),
        Said(403, b"<html>no</html>"),
        Said(302, b"", {"Location": "https://accounts.google.com/ServiceLogin"}),
        Said(200, b"<html>sign in</html>"),
        Said(200, b"[]"),
        as_json({}),
        as_json({"files": None}),
    ],
    ids=lambda said: f"{said.status}-{said.body[-30:]!r}",
)
@pytest.mark.parametrize("folder", [ROOT, SUB])
def test_a_page_that_cannot_be_had_fails_the_listing(drive: DriveRig, folder: str, said: Said) -> None:
    """Of the sub-folder or of the root, by pressure or by nonsense: not one card changes, even when confirmed."""
    drive.google.picture(99)
    drive.google.before = on_pages_of(folder, said)

    with pytest.raises(ListingError) as raised:
        drive.sync(confirm_removals=True)

    assert "Google Drive" in str(raised.value) and API_KEY not in str(raised.value)
    assert nothing_is_lost()
    drive.google.before = lambda asked: None
    assert drive.sync().unchanged == 30


@pytest.mark.parametrize("said", [refusal(403, "insufficientFilePermissions"), refusal(404, "notFound")])
def test_a_sub_folder_that_is_not_to_be_seen_shields_its_cards(drive: DriveRig, said: Said) -> None:
    """Which cards lay in it is not known, so none is removed; what else the drive lists still counts."""
    drive.google.picture(99)
    drive.google.remove("picture-0000000000000003")
    drive.google.before = on_pages_of(SUB, said)

    report = drive.sync(confirm_removals=True)

    assert (report.new, report.removed, report.held) == (1, 0, 0)
    assert report.named == [
        f"{SUB}/: a folder that is not to be seen ({said.status} {json.loads(said.body)['error']['errors'][0]['reason']})"
    ]
    assert report.notes == ["a part of the drive is not to be seen: nothing is taken for removed"]
    assert Card.objects.present().count() == 31


def test_a_shortcut_to_what_is_not_to_be_seen_shields_its_card(drive: DriveRig) -> None:
    """The target's id is in the shortcut, so only that card is spared."""
    google = drive.google
    google.children["elsewhere-folder1"] = []
    google.picture(50, "elsewhere-folder1")
    google.shortcut("shortcut-to-50.png", "picture-0000000000000050")
    drive.sync()
    google.resource_keys["picture-0000000000000050"] = "now asked for"
    google.remove("picture-0000000000000003")

    report = drive.sync()

    assert (report.removed, report.problems) == (1, 1)
    assert Card.objects.present().filter(identifier="picture-0000000000000050").exists()


@pytest.mark.parametrize("make_private", [True, False], ids=["private", "deleted"])
def test_a_root_that_is_not_to_be_seen_is_no_empty_folder(drive: DriveRig, make_private: bool) -> None:
    """Google lists nothing of such a folder and calls that a success."""
    if make_private:
        drive.google.resource_keys[ROOT] = "asked for"
    else:
        del drive.google.files[ROOT]

    with pytest.raises(ListingError, match="not to be seen"):
        drive.sync(confirm_removals=True)

    assert nothing_is_lost()


def test_a_drive_that_vanishes_for_a_day_comes_back_with_its_evidence(drive: DriveRig) -> None:
    """Refused, then listed as empty, then there again: nothing to read anew."""
    drive.google.before = lambda asked: refusal(403, "rateLimitExceeded")
    with pytest.raises(ListingError):
        drive.sync()
    drive.google.before = on_pages_of(ROOT, as_json({"files": []}))
    assert drive.sync().held == 30
    drive.google.before = lambda asked: None

    report = drive.sync()

    assert (report.unchanged, report.held) == (30, 0)
    assert nothing_is_lost()


def test_passing_pressure_is_waited_out(drive: DriveRig) -> None:
    """As long as was asked for, or longer each time; then the listing goes on."""
    answers = iter(
        [refusal(429, "rateLimitExceeded", {"Retry-After": "7"}), refusal(403, "userRateLimitExceeded"), Said(500)]
    )
    drive.google.before = lambda asked: next(answers, None)

    assert drive.sync().unchanged == 30
    assert len(drive.pauses) == 3
    assert drive.pauses[0] == 7.0
    assert drive.pauses[1] < drive.pauses[2] * 2 <= 8.0


def test_pages_in_a_circle_end(drive: DriveRig) -> None:
    """A page token that comes twice fails the listing instead of running for ever."""
    drive.google.before = on_pages_of(SUB, as_json({"files": [], "nextPageToken": "same"}))

    with pytest.raises(ListingError, match="never end"):
        drive.sync()


def test_an_incomplete_search_removes_nothing(drive: DriveRig) -> None:
    """Google says itself that files may be missing."""
    drive.google.before = on_pages_of(SUB, as_json({"files": [], "incompleteSearch": True}))

    assert drive.sync(confirm_removals=True).removed == 0
    assert nothing_is_lost()


def test_the_key_is_in_no_address(drive: DriveRig) -> None:
    """Addresses end up in logs."""
    assert all(API_KEY not in str((asked.path, asked.query)) for asked in drive.google.asked)
    assert API_KEY not in repr(drive.credential)
    assert API_KEY not in repr(SourcesSettings(google_drive_api_key=API_KEY))


def test_a_service_account_asks_with_a_token_that_it_keeps(drive: DriveRig, tmp_path: Path) -> None:
    """One signed request for a token, then the token in a header."""
    drive.credential = ServiceAccount(service_account_file(tmp_path, f"{drive.google.url}/token"))
    drive.google.asked.clear()

    assert drive.sync().unchanged == 30

    assert [asked.path for asked in drive.google.asked].count("/token") == 1
    assert {asked.headers.get("authorization") for asked in drive.google.asked[1:]} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("said", [Said(400, b'{"error": "invalid_grant"}'), Said(200, b"<html>"), Said(200, b"[]")])
def test_a_refused_token_fails_the_listing(drive: DriveRig, tmp_path: Path, said: Said) -> None:
    """And says what to look at."""
    drive.credential = ServiceAccount(service_account_file(tmp_path, f"{drive.google.url}/token"))
    drive.google.before = lambda asked: said if asked.path == "/token" else None

    with pytest.raises(ListingError, match="clock"):
        drive.sync()


def service_account_file(folder: Path, token_url: str) -> str:
    key = generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    path = folder / "account.json"
    path.write_text(json.dumps({"private_key": pem, "client_email": "x@y.example", "token_uri": token_url}))
    return str(path)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"private_key": "SECRET", "client_email": "x", "token_uri": "y"}']
)
def test_a_file_that_is_no_key_is_named_without_its_content(tmp_path: Path, content: str) -> None:
    """The operator reads which setting it was."""
    path = tmp_path / "account.json"
    path.write_text(content)

    for settings in (str(path), str(tmp_path / "none")):
        with pytest.raises(ListingError, match="GOOGLE_SERVICE_ACCOUNT_FILE") as raised:
            credential_of(SourcesSettings(google_service_account_file=settings))
        assert "SECRET" not in str(raised.value)


def test_without_a_key_the_error_says_what_to_set() -> None:
    """Either of the two."""
    with pytest.raises(ListingError, match="GOOGLE_DRIVE_API_KEY or GOOGLE_SERVICE_ACCOUNT_FILE"):
        credential_of(SourcesSettings())
    assert credential_of(SourcesSettings(google_drive_api_key="k")) == ApiKey("k")
