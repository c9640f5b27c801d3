"""The dead-letter list by cause: jobs that died of one error, shown as one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from jobs.api.asynchronous import twin
from jobs.api.jobs import list_jobs
from jobs.core.fingerprint import fingerprint, normalised
from jobs.core.job import Job, iso, moment
from jobs.core.states import JobState
from jobs.engine import JobFilter, get_engine

SAMPLE = 1_000
"""Newest dead jobs that are grouped. Reading all of a backlog of a million would take minutes."""


LOOKED_AT = 5_000
"""Dead jobs that are looked at for those that match."""

HOURS = 24


class ErrorGroup(msgspec.Struct, kw_only=True):
    """Dead jobs with the same fingerprint. ``message`` and ``sample`` (a job id) are those of the newest.
    ``pattern`` is what their messages have in common: what differs from job to job is replaced by marks.
    """

    fingerprint: str
    error_type: str
    message: str
    pattern: str
    place: str  # deepest frame of the project's own code, "module.function", or ""
    count: int
    first_seen: datetime | None
    last_seen: datetime | None
    types: list[str]
    pools: list[str]
    sample: str
    hours: list[int]
    """How many died in each of the last 24 hours, the present one last."""

    def as_dict(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {**fields, "first_seen": iso(self.first_seen), "last_seen": iso(self.last_seen)}


class DeadSample(NamedTuple):
    """Dead jobs, newest first. ``is_whole``: these are all that match; else older ones were not looked at."""

    jobs: list[Job]
    is_whole: bool


def error_groups(
    filter: JobFilter | None = None, *, sample: int = SAMPLE, look_at: int = LOOKED_AT
) -> list[ErrorGroup]:
    """The groups among the newest ``sample`` dead jobs that match, largest first.

    Counts are of the sample, for which no more than the newest ``look_at`` dead jobs are looked at. Who has to know
    whether these were all takes ``newest_dead`` and ``group_errors``.
    """
    return group_errors(newest_dead(filter or JobFilter(), sample, look_at).jobs)


def group_errors(jobs: Iterable[Job]) -> list[ErrorGroup]:
    """Dead jobs, newest first, by what they died of; the largest group first."""
    groups: dict[str, ErrorGroup] = {}
    engine = get_engine()
    now, visible = moment(engine.jobs.server_now_ms()), engine.visible
    for job in jobs:
        error_type, message, place = visible.error_parts(job)
        mark = fingerprint(error_type, message, place)  # of what is shown, as the filter of that name looks at it
        group = groups.get(mark)
        if group is None:
            group = groups[mark] = ErrorGroup(
                fingerprint=mark,
                error_type=error_type,
                message=message,
                pattern=normalised(message),
                place=place,
                count=0,
                first_seen=job.finished_at,
                last_seen=job.finished_at,
                types=[],
                pools=[],
                sample=job.id,
                hours=[0] * HOURS,
            )
        group.count += 1
        if job.finished_at is not None and 0 <= (ago := int((now - job.finished_at).total_seconds() // 3600)) < HOURS:
            group.hours[HOURS - 1 - ago] += 1
        if job.finished_at is not None and (group.first_seen is None or job.finished_at < group.first_seen):
            group.first_seen = job.finished_at
        for known, value in ((group.types, job.type), (group.pools, job.pool)):
            if value not in known:
                known.append(value)
    return sorted(groups.values(), key=lambda group: -group.count)


aerror_groups = twin(error_groups)


def newest_dead(filter: JobFilter, sample: int = SAMPLE, look_at: int = LOOKED_AT) -> DeadSample:
    """The newest that match among the newest ``look_at``: what is rare is not looked for to the end of the list."""
    dead = msgspec.structs.replace(filter, states=(JobState.DEAD,))
    jobs: list[Job] = []
    cursor: str | None = None
    looked = 0
    while len(jobs) < sample and looked < look_at:
        page = list_jobs(dead, cursor=cursor, limit=sample - len(jobs), look_at=look_at - looked)
        jobs += page.items
        looked += page.scanned
        cursor = page.next_cursor
        if cursor is None:
            return DeadSample(jobs, is_whole=True)
    return DeadSample(jobs, is_whole=False)
