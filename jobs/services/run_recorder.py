"""Writes runs that have ended into the database, where they are remembered longer than in the store.

Every host does: a row is written once for each end of a run, by whoever comes first, and writing it again changes
nothing. A database that is away delays the history and nothing else.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from time import monotonic

from django.db import DatabaseError
from django.utils import timezone

from jobs.core.job import moment
from jobs.core.schedule.plan import milliseconds_of
from jobs.core.workflow import RunFacts
from jobs.engine import Engine
from jobs.models import RunRecord
from jobs.services.database import fresh_connections

log = logging.getLogger("jobs.workflows")

EVERY_SECONDS = 10.0
IDLE_SECONDS = 60.0
"""While no run ends."""
PRUNE_SECONDS = 3_600.0
LATE_MS = 60_000
"""A run may come into the list of those that ended as long after its end."""
BATCH = 100
PRUNED = 1_000
"""Rows that are deleted at once."""
FIELDS = ("workflow", "version", "state", "created_at", "finished_at", "seconds", "nodes", "schedule")


class RunRecorder:
    """The service of a worker host (``jobs.runtime.service``)."""

    name = "run_recorder"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._since: int | None = None
        self._written: dict[str, int] = {}  # run → its end, ms, of those that may come again
        self._pruned_at = float("-inf")
        self._trouble = ""

    @property
    def every(self) -> float:
        seconds = EVERY_SECONDS if self._written else IDLE_SECONDS
        return seconds * random.uniform(0.8, 1.2)  # hosts that started together come one after the other

    def tick(self) -> dict[str, int]:
        """Writes down what has ended since the last time. Raises StoreUnavailable."""
        done = {"recorded": 0, "pruned": 0}
        try:
            with fresh_connections():
                done["recorded"] = self._record()
                done["pruned"] = self._prune()
            self._trouble = ""
        except DatabaseError as error:
            if str(error) != self._trouble:
                log.warning("Runs that end are written into the history once the database is there again: %s", error)
            self._trouble = str(error)
        return done

    def _record(self) -> int:
        if self._since is None:
            last = RunRecord.objects.values_list("finished_at", flat=True).first()
            self._since = milliseconds_of(last) - LATE_MS if last else 0
        written = sum(self._write(found) for found in self._ended(self._since))
        if not self._written:  # nor is there anything that the next look could be spared
            return written
        self._since = max(self._since, self._engine.workflows.server_now_ms() - LATE_MS)
        self._written = {run: at for run, at in self._written.items() if at >= self._since}
        return written

    def _ended(self, since: int) -> Iterator[list[RunFacts]]:
        """Pages of runs that ended since then and are not known to be written."""
        limit = BATCH
        while found := self._engine.workflows.ended(since, limit):
            yield [run for run in found if run.is_over and self._written.get(run.id) != run.finished_at_ms]
            last = found[-1].finished_at_ms
            if last > since:
                since = last
            elif len(found) < limit:
                return
            else:  # as many ended within one millisecond
                limit *= 2

    def _write(self, runs: Sequence[RunFacts]) -> int:
        if not runs:
            return 0
        ids = [run.id for run in runs]
        known = dict(RunRecord.objects.filter(run__in=ids).values_list("run", "finished_at"))
        rows = [_row(run) for run in runs if known.get(run.id) != run.finished_at]
        RunRecord.objects.bulk_create(rows, update_conflicts=True, unique_fields=["run"], update_fields=FIELDS)
        self._written |= {run.id: run.finished_at_ms for run in runs}
        return len(rows)

    def _prune(self) -> int:
        """Forgets rows past their retention, a part at a time."""
        if monotonic() - self._pruned_at < PRUNE_SECONDS:
            return 0
        before = timezone.now() - timedelta(seconds=self._engine.settings.run_records_seconds)
        old = RunRecord.objects.filter(finished_at__lt=before).order_by("finished_at")
        pruned, _ = RunRecord.objects.filter(pk__in=[*old.values_list("pk", flat=True)[:PRUNED]]).delete()
        if pruned < PRUNED:
            self._pruned_at = monotonic()
        return pruned


def _row(run: RunFacts) -> RunRecord:
    return RunRecord(
        run=run.id,
        workflow=run.name,
        version=run.version,
        state=run.state,
        created_at=moment(run.created_at_ms),
        finished_at=moment(run.finished_at_ms),
        seconds=run.seconds or 0.0,
        nodes=run.total,
        schedule=run.schedule or "",
    )
