"""Evidence from one card to another whose file is byte for byte the same; only from evidence that is current."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Exists, OuterRef

from cardpicker.models import Card, ImageEvidence
from cardpicker.stage_c.currency import current_evidence
from cardpicker.stage_c.evidence_row import store_evidence
from cardpicker.stage_c.outcomes import CardOutcome, Transferred
from cardpicker.stage_c.persist import Settle, settle_gone, settled_in_transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksums:
    """What a listing says of a file's bytes; either may be empty."""

    sha256: str = ""
    md5: str = ""

    @property
    def key(self) -> str:
        """What equal files share and others don't; empty where nothing is known."""
        return f"sha256:{self.sha256}" if self.sha256 else f"md5:{self.md5}" if self.md5 else ""

    def same_bytes(self, other: Checksums) -> bool:
        """Whether two files are known to be equal: by SHA-256 where both have one, else by MD5."""
        if self.sha256 and other.sha256:
            return self.sha256 == other.sha256
        return bool(self.md5) and self.md5 == other.md5


def find_donors(wanted: Iterable[Checksums]) -> dict[Checksums, int]:
    """Return a card with current evidence for each file of ``wanted`` that has one, in two queries at most."""
    asked = set(wanted)
    by_sha256 = _first_cards("sha256_checksum", {each.sha256 for each in asked} - {""})
    by_md5 = _first_cards("md5_checksum", {each.md5 for each in asked} - {""})
    donors: dict[Checksums, int] = {}
    for each in asked:
        for card_id, checksums in (*by_sha256.get(each.sha256, ()), *by_md5.get(each.md5, ())):
            if each.same_bytes(checksums):
                donors.setdefault(each, card_id)
    return donors


def transfer_evidence(
    card_id: int, image_version: str, checksums: Checksums, from_card_id: int, *, run_id: str, settle: Settle
) -> CardOutcome | None:
    """Copy the evidence of ``from_card_id`` and settle the card's work, in one transaction.

    Returns:
        Transferred, or CardGone or Deferred as in ``persist_evidence``; None, with nothing settled, when the other
        card's evidence is no longer current or no longer of equal bytes.
    """

    def copy() -> CardOutcome | None:
        donor = current_evidence().select_related("card").filter(card_id=from_card_id).first()
        if donor is None or not checksums.same_bytes(checksums_of(donor.card)):
            return None
        gone = store_evidence(_copied(donor, card_id, image_version, run_id))
        if gone is not None:
            return settle_gone(card_id, gone, settle)
        transferred = Transferred(from_card_id=from_card_id)
        settle(card_id, transferred)
        return transferred

    return settled_in_transaction(copy)


def checksums_of(card: Card) -> Checksums:
    """Return what the listing said of the card's file."""
    return Checksums(sha256=(card.sha256_checksum or "").lower(), md5=(card.md5_checksum or "").lower())


def _first_cards(field: str, values: set[str]) -> dict[str, list[tuple[int, Checksums]]]:
    """Return by checksum the first card that has it and current evidence, however many share it."""
    if not values:
        return {}
    rows = (
        Card.objects.filter(Exists(current_evidence().filter(card=OuterRef("pk"))), **{f"{field}__in": values})
        .order_by(field, "pk")
        .distinct(field)
        .values_list("pk", field, "sha256_checksum", "md5_checksum")
    )
    return {
        value: [(pk, Checksums(sha256=(sha256 or "").lower(), md5=(md5 or "").lower()))]
        for pk, value, sha256, md5 in rows
    }


def _copied(donor: ImageEvidence, card_id: int, image_version: str, run_id: str) -> ImageEvidence:
    return ImageEvidence(
        card_id=card_id,
        image_version=image_version,
        image_sha256=donor.image_sha256,
        manifest=donor.manifest,
        extractor_versions=donor.extractor_versions,
        readings=donor.readings,
        rendition=donor.rendition,
        width_px=donor.width_px,
        height_px=donor.height_px,
        set_code=donor.set_code,
        collector_number=donor.collector_number,
        art_hash=donor.art_hash,
        run_id=run_id,
        transferred_from_id=donor.card_id,
        judged_by="",
    )
