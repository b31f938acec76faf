"""One object of Scryfall's bulk file as the columns of a printing.

Only what names a printing is demanded: id, name, set and collector number. Anything else that is missing or of an
unexpected type counts as absent, and fields not known here are ignored.
"""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cardpicker.catalogue.name_key import name_key, name_keys
from cardpicker.catalogue.text import clean_text

_NAME_MAX = 500
_ARTIST_MAX = 200
_SET_CODE_MAX = 10
_NUMBER_MAX = 30
_URI_MAX = 1000
_PROMO_TYPE_MAX = 50
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class BadPrintingError(ValueError):
    """The object is no printing; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Printing:
    """A printing as the file has it; the fields are the columns of the staging table, dates and ids as text."""

    identifier: str
    oracle_id: str | None
    name: str
    name_key: str
    name_keys: list[str]
    artist: str
    set_code: str
    set_name: str
    collector_number: str
    language: str
    rarity: str
    released_at: str | None
    frame: str
    border_color: str
    layout: str
    promo_types: list[str]
    illustration_id: str | None
    image_uri: str


def parse_printing(value: object) -> Printing:
    """Return the printing that a JSON value of the bulk file describes.

    Raises:
        BadPrintingError: it is no card object, or one of the demanded fields is missing or unusable.
    """
    if not isinstance(value, dict):
        raise BadPrintingError("not a JSON object")
    if value.get("object", "card") != "card":
        raise BadPrintingError(f"a {str(value['object'])[:40]!r} object, not a card")
    faces = [face for face in _list(value.get("card_faces")) if isinstance(face, dict)]
    name = _demanded(value, "name", _NAME_MAX)
    return Printing(
        identifier=_demanded_id(value),
        oracle_id=_first_id("oracle_id", value, faces),
        name=name,
        name_key=name_key(name),
        name_keys=_keys(name, value, faces),
        artist=_first_text("artist", value, faces, _ARTIST_MAX),
        set_code=_code(value, "set", _SET_CODE_MAX).lower(),
        set_name=_text(value.get("set_name"), _ARTIST_MAX),
        collector_number=_code(value, "collector_number", _NUMBER_MAX),
        language=_text(value.get("lang"), 10) or "en",
        rarity=_text(value.get("rarity"), 20),
        released_at=_date(value.get("released_at")),
        frame=_text(value.get("frame"), 20),
        border_color=_text(value.get("border_color"), 20),
        layout=_text(value.get("layout"), 40),
        promo_types=[t for entry in _list(value.get("promo_types")) if (t := _text(entry, _PROMO_TYPE_MAX))],
        illustration_id=_first_id("illustration_id", value, faces),
        image_uri=_image_uri(value, faces),
    )


def _keys(name: str, card: Mapping[str, Any], faces: list[dict[str, Any]]) -> list[str]:
    """Return every key the printing is looked up by: its name's, its faces', and the names printed on it.

    ``//`` cannot stand in a file name; where two faces are joined, "and" and ``&`` are what people write.
    """
    names = [name]
    for part in (card, *faces):
        names += [_text(part.get(field), _NAME_MAX) for field in ("name", "printed_name", "flavor_name")]
    keys = [key for each in dict.fromkeys(filter(None, names)) for key in name_keys(each)]
    halves = name.split(" // ")
    if len(halves) == 2:
        keys.append(name_key(" and ".join(halves)))
    return list(dict.fromkeys(keys))


def _image_uri(card: Mapping[str, Any], faces: list[dict[str, Any]]) -> str:
    for part in (card, *faces):
        uris = part.get("image_uris")
        if isinstance(uris, dict):
            for size in ("normal", "png", "large", "small"):
                if uri := _text(uris.get(size), _URI_MAX):
                    return uri
    return ""


def _demanded(card: Mapping[str, Any], field: str, max_length: int) -> str:
    if text := _text(card.get(field), max_length):
        return text
    raise BadPrintingError(f"no {field}" if card.get(field) in (None, "") else f"{field} is no usable text")


def _code(card: Mapping[str, Any], field: str, max_length: int) -> str:
    """Return a field that means nothing when it is cut."""
    code = _demanded(card, field, max_length + 1)
    if len(code) > max_length:
        raise BadPrintingError(f"{field} is longer than {max_length} characters")
    return code


def _demanded_id(card: Mapping[str, Any]) -> str:
    if identifier := _id(card.get("id")):
        return identifier
    raise BadPrintingError("no id" if not card.get("id") else f"id {str(card['id'])[:60]!r} is no UUID")


def _first_text(field: str, card: Mapping[str, Any], faces: Iterable[Mapping[str, Any]], max_length: int) -> str:
    return next((text for part in (card, *faces) if (text := _text(part.get(field), max_length))), "")


def _first_id(field: str, card: Mapping[str, Any], faces: Iterable[Mapping[str, Any]]) -> str | None:
    return next((found for part in (card, *faces) if (found := _id(part.get(field)))), None)


def _text(value: object, max_length: int) -> str:
    return clean_text(value, max_length) if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _id(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return str(uuid.UUID(value))
    except ValueError:
        return None


def _date(value: object) -> str | None:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return dt.date.fromisoformat(value).isoformat()
    except ValueError:
        return None
