"""The one error of the embedded server: a sentence for the person at the terminal."""

from __future__ import annotations


class EmbeddedServerError(Exception):
    """The server cannot do what was asked; the message says why and what to do."""
