"""The dead-letter list by cause: jobs that died of one error, shown as one."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Any

import msgspec

from jobs.api.asynchronous import twin
from jobs.api.jobs import list_jobs
from jobs.api.redaction import shown
from jobs.core.job import Job, iso
from jobs.core.states import JobState
from jobs.engine import JobFilter

SAMPLE = 1_000
"""Newest dead jobs that are grouped. Reading all of a backlog of a million would take minutes."""


class ErrorGroup(msgspec.Struct, kw_only=True):
    """Dead jobs with the same fingerprint. ``message`` and ``sample`` (a job id) are those of the newest."""

    fingerprint: str
    error_type: str
    message: str
    place: str  # deepest frame of the project's own code, "module.function", or ""
    count: int
    first_seen: datetime | None
    last_seen: datetime | None
    types: list[str]
    pools: list[str]
    sample: str

    def as_dict(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return {**fields, "first_seen": iso(self.first_seen), "last_seen": iso(self.last_seen)}


def error_groups(filter: JobFilter | None = None, *, sample: int = SAMPLE) -> list[ErrorGroup]:
    """The groups among the newest ``sample`` dead jobs that match, largest first.

    Counts are of the sample: their sum below ``sample`` means that all matching jobs were looked at.
    """
    wanted = msgspec.structs.replace(filter or JobFilter(), states=(JobState.DEAD,))
    groups: dict[str, ErrorGroup] = {}
    for job in _newest(wanted, sample):
        error = shown(job).error or {}
        error_type, message = str(error.get("type") or "unknown"), str(error.get("message") or "")
        place = own_frame(str(error.get("traceback") or ""))
        mark = fingerprint(error_type, message, place)
        group = groups.get(mark)
        if group is None:
            group = groups[mark] = ErrorGroup(
                fingerprint=mark,
                error_type=error_type,
                message=message,
                place=place,
                count=0,
                first_seen=job.finished_at,
                last_seen=job.finished_at,
                types=[],
                pools=[],
                sample=job.id,
            )
        group.count += 1
        if job.finished_at is not None and (group.first_seen is None or job.finished_at < group.first_seen):
            group.first_seen = job.finished_at
        for known, value in ((group.types, job.type), (group.pools, job.pool)):
            if value not in known:
                known.append(value)
    return sorted(groups.values(), key=lambda group: -group.count)


aerror_groups = twin(error_groups)


def fingerprint(error_type: str, message: str, place: str) -> str:
    """One word for one error: its class, its message without what differs from job to job, and where it came from."""
    parts = "\n".join((error_type, normalised(message), place))
    return hashlib.blake2b(parts.encode("utf-8", "replace"), digest_size=6).hexdigest()


def normalised(message: str) -> str:
    """The message with numbers, ids, addresses, quoted text and mail addresses replaced by marks."""
    for pattern, mark in _VARYING:
        message = pattern.sub(mark, message)
    return message


def own_frame(traceback: str) -> str:
    """``file:function`` of the deepest frame outside installed packages and Python itself, or of the deepest at all.

    No line number: an unrelated edit above must not split the group.
    """
    frames: list[tuple[str, str]] = _FRAME.findall(traceback)
    own = [frame for frame in frames if not _FOREIGN.search(frame[0])]
    if not frames:
        return ""
    path, function = (own or frames)[-1]
    return f"{'/'.join(path.split('/')[-2:])}:{function}"


_FRAME = re.compile(r'^\s*File "([^"]+)", line \d+, in (\S+)', re.MULTILINE)
_FOREIGN = re.compile(r"site-packages|dist-packages|/lib/python\d|^<|/jobs/worker/")

# In this order: the more telling first, since what is replaced cannot be matched again.
_VARYING = (
    (re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)+"), "<mail>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`"), "<text>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"), "<hex>"),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "<n>"),
)


def _newest(filter: JobFilter, sample: int) -> list[Job]:
    jobs: list[Job] = []
    cursor: str | None = None
    while len(jobs) < sample:
        page = list_jobs(filter, cursor=cursor, limit=sample - len(jobs))
        jobs += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return jobs
