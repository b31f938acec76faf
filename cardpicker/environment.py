"""Typed settings read once from the environment.

A setting is a dataclass field declared with ``setting``: its variable, default, range and meaning live on that one line.
``load`` builds the frozen dataclass; ``describe`` lists the fields, which is how the reference page is checked against the code.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")

_METADATA_KEY = "setting"
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off", ""})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What is known of one setting beside its value."""

    variable: str
    help: str
    default: Any
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def range_text(self) -> str:
        """The allowed values in words, empty when anything of the type goes."""
        if self.choices:
            return ", ".join(self.choices)
        match self.low, self.high:
            case None, None:
                return ""
            case low, None:
                return f"at least {low:g}"
            case None, high:
                return f"at most {high:g}"
            case low, high:
                return f"{low:g} to {high:g}"


def setting(
    variable: str,
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Any:
    """Declare a dataclass field that ``load`` fills from the environment variable ``variable``.

    Args:
        default: the value when the variable is absent, or a function that computes it for this host.
        low, high: inclusive bounds of a number.
        choices: the allowed values of a string.
    """
    described = Setting(variable=variable, help=help, default=default, low=low, high=high, choices=choices)
    metadata = {_METADATA_KEY: described}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def describe(settings_class: type[Any]) -> list[Setting]:
    """List the settings of a dataclass in declaration order."""
    return [f.metadata[_METADATA_KEY] for f in dataclasses.fields(settings_class) if _METADATA_KEY in f.metadata]


def load(settings_class: type[T], environ: Mapping[str, str]) -> T:
    """Build ``settings_class`` from ``environ``.

    Raises:
        ImproperlyConfigured: a value is not of its type or outside its range; the message names the variable and what is allowed.
    """
    types = typing.get_type_hints(settings_class)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(settings_class):  # type: ignore[arg-type]
        declared: Setting | None = field.metadata.get(_METADATA_KEY)
        if declared is None or declared.variable not in environ:
            continue
        values[field.name] = _parse(declared, types[field.name], environ[declared.variable].strip())
    return settings_class(**values)


def _parse(declared: Setting, kind: Any, text: str) -> Any:
    value = _convert(declared, kind, text)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    too_low = is_number and declared.low is not None and value < declared.low
    too_high = is_number and declared.high is not None and value > declared.high
    if too_low or too_high or (declared.choices and value not in declared.choices):
        raise ImproperlyConfigured(f"{declared.variable}={text!r} is out of range: set it to {declared.range_text}.")
    return value


def _convert(declared: Setting, kind: Any, text: str) -> Any:
    if kind is bool:
        if text.lower() in _TRUE | _FALSE:
            return text.lower() in _TRUE
        raise ImproperlyConfigured(f"{declared.variable}={text!r} is not a yes or no: set it to 1 or 0.")
    if kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            word = "whole number" if kind is int else "number"
            raise ImproperlyConfigured(f"{declared.variable}={text!r} is not a {word}.") from None
        if number != number:
            raise ImproperlyConfigured(f"{declared.variable}={text!r} is not a number.")
        return number
    return text
