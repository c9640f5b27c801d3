"""Forgets entries of the audit log whose time is over, ``SCHEDULER["AUDIT_DAYS"]`` after they were written."""

from __future__ import annotations

import logging
import random
from datetime import timedelta

from django.db import DatabaseError
from django.utils import timezone

from jobs.models import AuditEntry
from jobs.services.database import fresh_connections

log = logging.getLogger("jobs.audit")

EVERY_SECONDS = 3_600.0
"""It need not be alone: two that look at once remove the same rows."""
BATCH = 1_000


class Archivist:
    """The service of a worker host (``jobs.runtime.service``). ``days``: how long entries are kept; 0: for ever."""

    name = "archivist"

    def __init__(self, days: float) -> None:
        self._days = days

    @property
    def every(self) -> float:
        return EVERY_SECONDS * random.uniform(0.8, 1.2)

    def tick(self) -> dict[str, int]:
        """Everything that is too old. A database that is away is asked again next time."""
        forgotten = 0
        if self._days > 0:
            try:
                with fresh_connections():
                    forgotten = self._forget()
            except DatabaseError as error:
                log.warning("Old entries of the audit log are kept until the database can be asked: %s", error)
        return {"forgotten": forgotten}

    def _forget(self) -> int:
        before, forgotten = timezone.now() - timedelta(days=self._days), 0
        while removed := AuditEntry.objects.forget(before, most=BATCH):
            forgotten += removed
        return forgotten
