"""Every list and every page of the admin, with plain rows and with odd ones."""

from __future__ import annotations

import pytest
from django.apps import apps
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from cardpicker.models import (
    CanonicalCard,
    Card,
    CardPrintingTag,
    CardWork,
    CatalogPass,
    EnvelopeBar,
    EnvelopeTrip,
    ImageEvidence,
    PilotRunLedger,
    ReviewItem,
    Source,
    StageEThrottleCounter,
    VoteSource,
)
from cardpicker.tests.admin_rows import (
    RUN,
    SCRIPT,
    make_card,
    make_everything,
    make_evidence,
    make_printing,
    make_run,
    make_source,
    make_staff,
    make_trip,
    quarantine,
    superuser_client,
)

MODELS = list(apps.get_app_config("cardpicker").get_models())
NEVER_WRITTEN = [
    CatalogPass,
    ImageEvidence,
    PilotRunLedger,
    CardPrintingTag,
    CardWork,
    EnvelopeTrip,
    StageEThrottleCounter,
]

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin_client(db: None) -> Client:
    """A superuser's browser."""
    return superuser_client()


def page(model: type[Model], name: str, *args: object) -> str:
    """Return an address of the admin."""
    return reverse(f"admin:cardpicker_{model._meta.model_name}_{name}", args=args)


def text_of(client: Client, address: str) -> str:
    """Get a page that must be there."""
    response = client.get(address)
    assert response.status_code == 200, (address, response.status_code)
    return response.content.decode()


@pytest.mark.parametrize("model", MODELS)
def test_lists_and_pages_open(admin_client: Client, model: type[Model]) -> None:
    """Each model's list and one row's page answer."""
    make_everything(2)

    row = model._default_manager.first()

    assert row is not None
    text_of(admin_client, page(model, "changelist"))
    text_of(admin_client, page(model, "change", row.pk))


@pytest.mark.parametrize("model", MODELS)
def test_queries_of_a_list_do_not_grow_with_its_rows(admin_client: Client, model: type[Model]) -> None:
    """A list of twelve rows costs what a list of two does."""
    make_everything(2)
    text_of(admin_client, page(model, "changelist"))
    with CaptureQueriesContext(
        connection,
    ) as few:
        text_of(admin_client, page(model, "changelist"))
    make_everything(10)

    with CaptureQueriesContext(connection) as many:
        text_of(admin_client, page(model, "changelist"))

    assert len(many) <= len(few), [query["sql"] for query in many.captured_queries]
    assert len(many) <= 15


def test_a_printing_is_found_by_scryfalls_id_and_by_words(admin_client: Client) -> None:
    """Its id finds it alone; words, also such as look like the start of an id, search as ever."""
    first, second = make_printing(1), make_printing(2)

    by_id = text_of(admin_client, f"{page(CanonicalCard, 'changelist')}?q={first.identifier}")
    by_name = text_of(admin_client, f"{page(CanonicalCard, 'changelist')}?q=Opt")

    assert page(CanonicalCard, "change", first.pk) in by_id and page(CanonicalCard, "change", second.pk) not in by_id
    assert all(page(CanonicalCard, "change", each.pk) in by_name for each in (first, second))
    text_of(admin_client, f"{page(CanonicalCard, 'changelist')}?q={str(first.identifier)[:13]}")


def test_queries_of_a_cards_page_do_not_grow_with_its_votes(admin_client: Client) -> None:
    """A card with twenty votes costs what a card with one does."""
    card = make_card(make_source())
    CardPrintingTag.objects.create(card=card, printing=make_printing(0), anonymous_id="v", source=VoteSource.OCR)
    with CaptureQueriesContext(connection) as few:
        text_of(admin_client, page(Card, "change", card.pk))
    for number in range(1, 20):
        user = make_staff(f"u{number}")
        CardPrintingTag.objects.create(
            card=card, printing=make_printing(number), anonymous_id=f"v{number}", user=user, source=VoteSource.USER
        )

    with CaptureQueriesContext(connection) as many:
        text_of(admin_client, page(Card, "change", card.pk))

    assert len(many) == len(few)


@pytest.mark.parametrize("model", [Card, ImageEvidence])
def test_what_was_read_is_never_markup(admin_client: Client, model: type[Model]) -> None:
    """A script in a reading, a name or a detail is shown as text."""
    card = make_card(make_source(), name=SCRIPT)
    evidence = make_evidence(card)
    quarantine(card, outcome=SCRIPT[:40])

    row = card if model is Card else evidence
    for address in (page(model, "change", row.pk), page(model, "changelist"), page(CardWork, "changelist")):
        text = text_of(admin_client, address)
        assert SCRIPT not in text
        assert "&lt;script&gt;" in text


def test_readings_are_a_table_with_units(admin_client: Client) -> None:
    """Readings stand in rows by extractor, with version and unit in words."""
    text = text_of(admin_client, page(Card, "change", make_evidence(make_card(make_source())).card_id))

    assert "collector line (version 3)" in text
    assert "bleed (mm)" in text
    assert "512 ms" in text


def test_odd_rows_are_shown(admin_client: Client) -> None:
    """A card without work or name, evidence of odd JSON, a vote without a person, a running batch."""
    source = make_source()
    bare, odd = make_card(source, name=""), make_card(source)
    CardWork.objects.filter(pk=bare.pk).delete()
    evidence = make_evidence(odd, readings=["not", {"an": "object"}], extractor_versions="x", elapsed_ms=0, run_id="")
    vote = CardPrintingTag.objects.create(
        card=odd, is_no_match=True, anonymous_id="p", source="USER", evidence=[1, None]
    )
    running = make_run(running=True)
    unknown = Source.objects.create(key="odd", name="", kind="no_such_kind", location="\0".strip("\0") or "x")
    lost = make_card(unknown)
    review = ReviewItem.objects.create(card=bare, reason="NO_TEXT", survivors=[])
    for row in (bare, odd, evidence, vote, running, unknown, lost, review):
        text_of(admin_client, page(type(row), "change", row.pk))
    for model in MODELS:
        text_of(admin_client, page(model, "changelist"))

    assert "still running" in text_of(admin_client, page(PilotRunLedger, "change", running.pk))


@pytest.mark.parametrize("model", MODELS)
def test_nothing_that_happened_can_be_edited(admin_client: Client, model: type[Model]) -> None:
    """What the pipeline wrote has no add, change or delete; cards and printings cannot be deleted."""
    make_everything(1)
    row = model._default_manager.first()
    assert row is not None
    undeletable = model is not Source

    deleting = admin_client.get(page(model, "delete", row.pk)).status_code
    acting = admin_client.post(page(model, "changelist"), {"action": "delete_selected", "_selected_action": [row.pk]})

    assert deleting == (403 if undeletable else 200)
    assert acting.status_code in (200, 302)
    assert model._default_manager.filter(pk=row.pk).exists()
    if model in NEVER_WRITTEN:
        assert admin_client.get(page(model, "add")).status_code == 403
        assert admin_client.post(page(model, "change", row.pk), {"_save": "1"}).status_code == 403


def test_a_person_sets_a_cards_printing_and_nothing_else(admin_client: Client) -> None:
    """The printing is written; a name that is sent along is not, nor what the pipeline has written meanwhile."""
    card, printing = make_card(make_source(), name="Kept"), make_printing()
    form = {"canonical_card": printing.pk, "name": "Changed", "_save": "1"}
    inline = {"printing_tags-TOTAL_FORMS": 0, "printing_tags-INITIAL_FORMS": 0}

    response = admin_client.post(page(Card, "change", card.pk), {**form, **inline})

    card.refresh_from_db()
    assert response.status_code == 302
    assert (card.canonical_card_id, card.name) == (printing.pk, "Kept")


def test_printings_can_be_looked_up_for_a_card(admin_client: Client) -> None:
    """The card's form finds printings by name, with a set in words."""
    make_printing(4)
    query = {"term": "opt", "app_label": "cardpicker", "model_name": "card", "field_name": "canonical_card"}

    found = admin_client.get(reverse("admin:autocomplete"), query).json()["results"]

    assert [each["text"] for each in found] == [str(CanonicalCard.objects.get())]


def test_list_of_cards_shows_the_best_machine_vote(admin_client: Client) -> None:
    """Of two machine votes, the surer one is shown, with its confidence."""
    card, printing = make_card(make_source()), make_printing(31)
    CardPrintingTag.objects.create(card=card, is_no_match=True, anonymous_id="a", source="OCR", confidence=0.6)
    CardPrintingTag.objects.create(card=card, printing=printing, anonymous_id="b", source="OCR", confidence=0.85)

    text = text_of(admin_client, page(Card, "changelist"))

    assert "S31 31 [en]" in text
    assert "85%" in text
    assert "60%" not in text


def test_run_leads_to_its_cards_and_back(admin_client: Client) -> None:
    """A run's page links to the cards it read, and a card's page to the run."""
    source = make_source()
    card, other = make_card(source, name="Read by it"), make_card(source, name="Read by another")
    make_evidence(card)
    make_evidence(other, run_id="another")
    run = make_run()

    assert f"{page(Card, 'changelist')}?run={RUN}" in text_of(admin_client, page(PilotRunLedger, "change", run.pk))
    assert f"{page(PilotRunLedger, 'changelist')}?run_id={RUN}" in text_of(admin_client, page(Card, "change", card.pk))
    for model in (Card, CardWork):
        listed = text_of(admin_client, f"{page(model, 'changelist')}?run={RUN}")
        assert "Read by it" in listed
        assert "Read by another" not in listed


def test_index_groups_models_and_says_that_dispatch_is_halted(admin_client: Client) -> None:
    """The index has headings in words, work by state, and a banner while a trip is open."""
    make_card(make_source())
    before = text_of(admin_client, reverse("admin:index"))
    trip = make_trip(EnvelopeBar.GOOGLE_LOCKOUT)

    after = text_of(admin_client, reverse("admin:index"))

    for heading in ("Catalog", "Identification", "Pipeline", "Printings", "Throttle counter"):
        assert heading in before
    assert "<b>1</b> due" in before
    assert "Dispatch is halted" not in before
    assert "Dispatch is halted" in after
    assert page(EnvelopeTrip, "change", trip.pk) in after


def test_banner_is_on_other_pages_and_not_for_strangers(admin_client: Client, client: Client) -> None:
    """Every page of the admin shows the halt; the login page tells nobody."""
    make_trip()

    assert "Dispatch is halted" in text_of(admin_client, page(Card, "changelist"))
    assert "Dispatch is halted" not in text_of(client, reverse("admin:login"))


def test_staff_without_permission_see_nothing(client: Client) -> None:
    """Being of the staff alone opens no list."""
    client.force_login(make_staff("new"))

    for model in MODELS:
        assert client.get(page(model, "changelist")).status_code == 403
    text_of(client, reverse("admin:index"))


@pytest.mark.parametrize(
    "query", ["q=%00", "q=" + "x" * 5000, "state=nonsense", "removed=9", "p=99999", "run=%27%22", "o=99.-1"]
)
def test_odd_addresses_of_lists_are_no_errors(admin_client: Client, query: str) -> None:
    """Whatever stands in a list's address, the answer is a page or a way back."""
    make_everything(1)

    for model in (Card, CardWork, PilotRunLedger, EnvelopeTrip):
        assert admin_client.get(f"{page(model, 'changelist')}?{query}").status_code in (200, 302)
