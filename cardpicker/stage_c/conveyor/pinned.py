"""Imported for its effect, first of all in the fork server: native libraries read their thread limits when they load."""

from .process import pin_native_threads

pin_native_threads()
