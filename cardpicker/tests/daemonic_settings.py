"""The settings with django-q2's own default for its workers, to show what that default does."""

from __future__ import annotations

import os

from config.settings import *  # noqa: F403
from config.settings import Q_CLUSTER

Q_CLUSTER = {key: value for key, value in Q_CLUSTER.items() if key != "daemonize_workers"}
SILENCED_SYSTEM_CHECKS = ["cardpicker.E001"] if os.environ.get("SILENCE_CHECKS") else []
