"""Django settings of a project whose patience with handlers that do not stop is short, for tests of just that."""

from __future__ import annotations

from scheduler_project.settings import *  # noqa: F403
from scheduler_project.settings import SCHEDULER as _USUAL

SCHEDULER = {**_USUAL, "HARD_TIMEOUT_GRACE": 0.7, "CANCEL_GRACE": 0.4}
