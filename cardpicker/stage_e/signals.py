"""Signals."""


def connect() -> None: ...
