"""Django settings of a project whose hosts renew leases once a minute: what they hear meanwhile, news told them."""

from __future__ import annotations

from jobs.worker import options
from scheduler_project.settings import *  # noqa: F403

options.CANCEL_SECONDS = 60.0
