"""Hashing the catalog's art: once an illustration, resumable, never for ever, and at its host's rate."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from cardpicker.catalogue.canonical_art import MAX_ATTEMPTS, ArtScope, DueArt, due_art, forget_other_kinds, only_run
from cardpicker.catalogue.version import read_version
from cardpicker.models import ArtOutcome, CanonicalArt, CanonicalCard, CardWork, FetchBudget
from cardpicker.stage_c.canonical_art import FAILED_IN_A_ROW, Ended, scryfall_place
from cardpicker.stage_c.fetch.limiter import SCRYFALL_IMAGE, shut
from cardpicker.stage_e.catalogue_changes import mark_names_due
from cardpicker.stage_e.envelope import pause
from cardpicker.tests.art_rig import SETTINGS, flat_picture, hash_all, illustrated, path_of, picture
from cardpicker.tests.misbehaving_server import MisbehavingServer, answer, misbehaving_server
from cardpicker.tests.stage_d_cases import make_card

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    """A host of pictures, empty at first."""
    with misbehaving_server() as running:
        yield running


def base(server: MisbehavingServer) -> str:
    return server.url("")


def outcomes() -> dict[str, str]:
    """Return the stored outcome of each illustration by its printing's number."""
    art = dict(CanonicalArt.objects.values_list("key", "outcome"))
    rows = CanonicalCard.objects.values_list("collector_number", "illustration_id")
    return {number: art[key] for number, key in rows if key in art}


def test_an_illustration_is_fetched_once_and_shared_by_its_printings(server: MisbehavingServer) -> None:
    """Three printings of one art cost one fetch and have one hash; what is flat or missing has none, never 0."""
    one, two, three, flat, none = illustrated(5)
    CanonicalCard.objects.filter(pk__in=[two.pk, three.pk]).update(illustration_id=one.illustration_id)
    CanonicalCard.objects.filter(pk=none.pk).update(image_uri="")
    server.default = answer(200, picture(1))
    server.routes[path_of(flat)] = answer(200, flat_picture())

    report = hash_all(base(server))

    assert report.ended is Ended.DONE
    assert len(server.paths) == 2
    hashes = dict(CanonicalCard.objects.values_list("collector_number", "art_hash"))
    assert hashes["1"] == hashes["2"] == hashes["3"] != 0
    assert hashes["1"] is not None
    assert hashes["4"] is hashes["5"] is None
    assert outcomes()["4"] == ArtOutcome.FLAT and outcomes()["5"] == ArtOutcome.NO_PICTURE
    assert read_version()[1] > 0


def test_what_was_tried_is_not_asked_again(server: MisbehavingServer) -> None:
    """A second run asks only for what may still come; a picture gone for good is asked for at another address."""
    good, gone, broken, flaky = illustrated(4)
    server.routes = {
        path_of(good): answer(200, picture(1)),
        path_of(gone): answer(404, b"no such picture"),
        path_of(broken): answer(200, picture(2)[:400]),
        path_of(flaky): answer(500, b"oops"),
    }
    hash_all(base(server))
    assert outcomes() == {"1": "HASHED", "2": "GONE", "3": "UNUSABLE", "4": "FAILED"}
    asked = len(server.paths)

    assert hash_all(base(server)).ended is Ended.DONE
    assert len(server.paths) == asked

    CanonicalArt.objects.update(tried_at=timezone.now() - timedelta(hours=2))
    hash_all(base(server))
    assert server.paths[asked:] == [path_of(flaky)]

    CanonicalCard.objects.filter(pk=gone.pk).update(image_uri="https://cards.scryfall.io/normal/front/1.jpg")
    hash_all(base(server))
    assert outcomes()["2"] == ArtOutcome.HASHED


def test_a_transient_failure_is_given_up_after_some_tries_and_taken_up_on_demand(server: MisbehavingServer) -> None:
    """Nothing is tried for ever, and nothing is lost."""
    illustrated(1)
    server.default = answer(500, b"oops")
    for _ in range(MAX_ATTEMPTS + 2):
        hash_all(base(server))
        CanonicalArt.objects.update(tried_at=timezone.now() - timedelta(days=30))
    assert len(server.paths) == MAX_ATTEMPTS

    server.default = answer(200, picture(3))
    hash_all(base(server), scope=ArtScope(retry=True))

    assert CanonicalCard.objects.get().art_hash


def test_patience_that_is_asked_for_is_had_and_counts_against_nobody(server: MisbehavingServer) -> None:
    """A 429 widens the shared interval and is no failure; the picture is asked for again."""
    illustrated(2)
    refusals = iter([True, False])

    def sometimes(visit: object) -> bool:
        busy = next(refusals, False)
        return (answer(429, b"slow") if busy else answer(200, picture(4)))(visit)  # type: ignore[arg-type]

    server.default = sometimes
    report = hash_all(base(server))

    assert (report.ended, report.throttled) == (Ended.DONE, 1)
    assert list(CanonicalArt.objects.values_list("outcome", flat=True)) == ["HASHED"] * 2
    assert FetchBudget.objects.get(destination=SCRYFALL_IMAGE).widening > 1


def test_a_host_that_only_throttles_ends_the_run(server: MisbehavingServer) -> None:
    """After some 429 in a row the run says so; nothing is stored against the pictures."""
    illustrated(3)
    server.default = answer(429, b"slow")

    assert hash_all(base(server)).ended is Ended.THROTTLED
    assert not CanonicalArt.objects.exists()


def test_a_lockout_ends_the_run_and_shuts_the_budget(server: MisbehavingServer) -> None:
    """Three refusals in a row are about us: nothing is stored, everybody else is let through a probe at a time."""
    illustrated(12)
    server.default = answer(403, b"forbidden")

    report = hash_all(base(server))

    assert report.ended is Ended.LOCKED_OUT
    assert not CanonicalArt.objects.exists()
    assert FetchBudget.objects.get(destination=SCRYFALL_IMAGE).is_probing
    assert len(server.paths) < 12


def test_a_host_that_is_away_costs_few_tries(server: MisbehavingServer) -> None:
    """A run ends after a number of failures in a row; the other illustrations have lost nothing."""
    illustrated(FAILED_IN_A_ROW + 20)
    server.default = answer(500, b"oops")

    assert hash_all(base(server)).ended is Ended.UNREACHABLE
    assert CanonicalArt.objects.count() < FAILED_IN_A_ROW + 10


def test_no_picture_is_asked_for_before_its_permit(server: MisbehavingServer) -> None:
    """Ten a second and no more: sixteen pictures take a second and a half at least, however fast the host."""
    illustrated(16)
    server.default = answer(200, picture(5))
    started = time.monotonic()

    hash_all(base(server))

    assert time.monotonic() - started >= 1.4


def test_the_shared_budget_is_heeded(server: MisbehavingServer) -> None:
    """While the host is probed, one picture a minute may be asked for, by all processes together."""
    illustrated(3)
    server.default = answer(200, picture(5))
    shut(SCRYFALL_IMAGE)
    hash_all(base(server), limit=1)
    FetchBudget.objects.update(is_probing=True, next_permit_at=timezone.now() + timedelta(hours=1))

    assert hash_all(base(server)).ended is Ended.THROTTLED
    assert len(server.paths) == 1


def test_limit_scope_and_stop(server: MisbehavingServer) -> None:
    """A limit stops the run, a set bounds it, a sample stays the same, and a stop lets nothing begin."""
    illustrated(4, "aaa")
    illustrated(2, "bbb")
    server.default = answer(200, picture(6))

    assert hash_all(base(server), should_stop=lambda: "paused").ended is Ended.STOPPED
    assert not server.paths
    assert hash_all(base(server), scope=ArtScope(sets=("bbb",))).ended is Ended.DONE
    assert len(server.paths) == 2
    sample = {each.key for each in due_art(ArtScope(sets=("aaa",), sample=3), timezone.now())}
    assert hash_all(base(server), scope=ArtScope(sets=("aaa",), sample=3), limit=1).ended is Ended.LIMIT
    rest = {each.key for each in due_art(ArtScope(sets=("aaa",), sample=3), timezone.now())}
    assert len(rest) == 2 and rest < sample


def test_cards_of_a_hashed_name_are_due_for_judgement(server: MisbehavingServer) -> None:
    """What an art hash may narrow now is judged again."""
    illustrated(1)
    card = make_card("Card 1")
    CardWork.objects.update(due_at=None)
    server.default = answer(200, picture(7))

    hash_all(base(server), on_changed=mark_names_due)

    assert CardWork.objects.get(card=card).due_at is not None


def test_hashes_of_another_kind_are_forgotten_and_made_again(server: MisbehavingServer) -> None:
    """After the method changed, no old hash is compared with a new one."""
    illustrated(1)
    server.default = answer(200, picture(8))
    hash_all(base(server))
    CanonicalArt.objects.update(kind="an older one")

    assert forget_other_kinds() == 1
    assert CanonicalCard.objects.get().art_hash is None
    hash_all(base(server))
    assert CanonicalCard.objects.get().art_hash


@pytest.mark.django_db(transaction=True)
def test_killed_in_the_middle_it_goes_on_where_it_was(server: MisbehavingServer) -> None:
    """A run killed by SIGKILL leaves whole rows; the next one does the rest, and fetches little twice."""
    illustrated(80)
    server.default = answer(200, picture(9))
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    main = "import django; django.setup(); from cardpicker.tests.art_rig import main; main()"
    command = [sys.executable, "-c", main, base(server), str(connection.settings_dict["NAME"])]
    process = subprocess.Popen(command, env=environment, cwd=Path(__file__).resolve().parents[2])
    try:
        while not CanonicalArt.objects.exists():
            assert process.poll() is None, "it ended before it stored anything"
        with only_run() as is_only:
            assert not is_only
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)

    stored = CanonicalArt.objects.count()
    assert 0 < stored < 80
    assert not CanonicalCard.objects.filter(art_hash=None, illustration_id__in=CanonicalArt.objects.values("key"))
    report = hash_all(base(server))

    assert report.ended is Ended.DONE
    assert sum(report.counts.values()) == 80 - stored
    assert not CanonicalCard.objects.filter(art_hash=None).exists()


def test_a_run_is_the_only_one_in_its_own_process_too() -> None:
    """A session would be given its lock again and keep a part of it: it is refused, and nothing is left at the end."""
    with only_run() as first:
        with only_run() as second:
            assert first and not second
        with only_run() as third:
            assert not third
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        assert cursor.fetchone() == (0,)


def test_the_address_is_that_of_the_art_alone() -> None:
    """Made of the printing's id, for old addresses too; another host than Scryfall's is not asked at all."""
    printing = uuid.UUID("d5c83259-9b90-47c2-b48e-c7d78519e792")

    def location(uri: str) -> str | None:
        place = scryfall_place(DueArt(key=printing, printing=printing, image_uri=uri), SETTINGS)
        return None if place is None else place.location

    art = "https://cards.scryfall.io/art_crop/front/d/5/d5c83259-9b90-47c2-b48e-c7d78519e792.jpg"
    assert location("https://cards.scryfall.io/normal/front/d/5/d5c83259.jpg?1562") == f"{art}?1562"
    assert location("https://img.scryfall.com/cards/png/en/lea/1.png") == art
    assert location("https://cards.scryfall.io/normal/back/d/5/d5c83259.jpg") == art.replace("front", "back")
    assert location("http://169.254.169.254/scryfall.io") is None
    assert location("https://scryfall.io.evil.example/x.jpg") is None
    assert location("") is None


def test_the_command_foretells_and_obeys_a_pause(capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run fetches nothing; an open trip ends a run with the envelope's code."""
    illustrated(3)
    call_command("hash_canonical_art", "--dry-run")
    assert "3 illustrations due" in capsys.readouterr().out

    pause("ann", "moving house")
    with pytest.raises(SystemExit) as left:
        call_command("hash_canonical_art")
    assert left.value.code == 3
    assert not CanonicalArt.objects.exists()
    with pytest.raises(CommandError, match="whole number"):
        call_command("hash_canonical_art", "--limit", "0")
