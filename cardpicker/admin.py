"""Where Django's autodiscovery looks for the admin; it lives in ``cardpicker.operations``."""

from __future__ import annotations

import cardpicker.operations.admin  # noqa: F401
