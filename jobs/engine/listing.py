"""Pages of jobs, state by state, that stay stable while jobs come and go.

A page costs the same whatever the backlog: it starts where the cursor points (binary search in the server) and looks
at no more than ``SCAN_LIMIT`` jobs, even if a filter leaves most of them out; the cursor then says where to go on.
"""

from __future__ import annotations

import base64
import heapq
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from jobs.core.fingerprint import fingerprint_of
from jobs.core.job import Job, Route
from jobs.core.states import TERMINAL, JobState
from jobs.core.type_pattern import means
from jobs.engine.batches import READ_BATCH, batches
from jobs.engine.bundles import BUNDLE_MARK, open_bundles
from jobs.engine.redaction import Visible
from jobs.exceptions import OptionInvalid
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
from jobs.store.scripts import Call

SCAN_LIMIT = 5000
"""Jobs that one page may look at."""

MAX_PAGE = 1000

CHUNK = 200
"""Jobs that are read on at once."""

ORDER = (
    JobState.LEASED,
    JobState.READY,
    JobState.RETRY_WAIT,
    JobState.SCHEDULED,
    JobState.BLOCKED,
    JobState.DEAD,
    JobState.SUCCEEDED,
    JobState.CANCELLED,
    JobState.SKIPPED,
)
"""The order of states in a list that shows several. Live ones run forward in time, ended ones newest first."""

_SCORE = re.compile(r"-?(inf|[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)\Z")

Parts = Sequence[tuple[Route, Sequence[str]]]
"""Ids of jobs by the partition that they are in."""

Reader = Callable[[Parts], list[list[Job | None]]]


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs: empty or None means any.

    ``type``: a name, or its beginning and a ``*`` (``jobs.core.type_pattern``). ``search``: text in id, type, tag, meta
    value or error. ``since``: created at or after. ``until``: in its present state at or before this moment (for ended
    jobs: their end; for others: their creation), which freezes a selection. ``before``: in its present state since this
    moment or longer. ``worker``: text in the name of the worker that has or had it. ``attempts``: started at least so
    often. ``fingerprint``: of the error that the job ended with, as groups of dead jobs carry it.
    """

    states: tuple[JobState, ...] = ()
    pool: str | None = None
    type: str | None = None
    tag: str | None = None
    search: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    fingerprint: str | None = None
    before: datetime | None = None
    worker: str | None = None
    attempts: int | None = None

    def matches(self, job: Job) -> bool:
        return self.is_like(job) and (self.fingerprint is None or fingerprint_of(job.error) == self.fingerprint)

    def is_like(self, job: Job) -> bool:
        """Whether it matches, whatever error it ended with."""
        return (
            (not self.states or job.state in self.states)
            and (self.type is None or means(self.type, job.type))
            and (self.tag is None or self.tag in job.tags)
            and (self.since is None or job.created_at >= self.since)
            and (self.until is None or (job.finished_at or job.created_at) <= self.until)
            and (self.before is None or job.since <= self.before)
            and (self.worker is None or self.worker in (job.worker or ""))
            and (self.attempts is None or job.attempt >= self.attempts)
            and (self.search is None or self._is_found_in(job))
        )

    def _is_found_in(self, job: Job) -> bool:
        wanted = (self.search or "").casefold()
        texts = [job.id, job.type, *job.tags, *job.meta.values()]
        if job.error:
            texts += [str(job.error.get("type", "")), str(job.error.get("message", ""))]
        return any(wanted in text.casefold() for text in texts)


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """``next_cursor`` None: there are no more. ``scanned``: jobs that were looked at."""

    items: list[Job]
    next_cursor: str | None
    scanned: int = 0


class _Place(msgspec.Struct, array_like=True, frozen=True):
    """Where a page ended: in which state's lines, after which member."""

    state: str
    score: str
    id: str


def list_jobs(
    store: Store,
    partitions: Sequence[Route],
    read: Reader,
    wanted: JobFilter,
    cursor: str | None,
    limit: int,
    visible: Visible,
    look_at: int = SCAN_LIMIT,
) -> Page:
    """One page, found among at most ``look_at`` jobs. OptionInvalid for a cursor that did not come from here.

    ``visible``: what people may see of a job. Searches, tags and fingerprints find nothing beyond that, or they would
    tell secrets letter by letter, and confirm them to who guesses.
    """
    limit = max(1, min(limit, MAX_PAGE))
    after = _decode_cursor(cursor) if cursor else None
    states = [state for state in ORDER if not wanted.states or state in wanted.states]
    if after is not None:
        states = states[states.index(JobState(after.state)) :] if after.state in states else []
    items: list[Job] = []
    scanned = 0
    for state in states:
        start = after if after is not None and after.state == state else None
        for chunk in _walk(store, partitions, state, start, chunk_size=min(limit - len(items), CHUNK)):
            jobs = _read_all(read, chunk)
            for (score, job_id, _route), job in zip(chunk, jobs, strict=True):
                scanned += 1
                if job is not None and job.state == state and _matches(wanted, job, visible):
                    items.append(job)
                if len(items) == limit or scanned >= look_at:
                    return Page(items=items, next_cursor=_encode_cursor(_Place(state, score, job_id)), scanned=scanned)
    return Page(items=items, next_cursor=None, scanned=scanned)


def _matches(wanted: JobFilter, job: Job, visible: Visible) -> bool:
    if not wanted.is_like(job) or (wanted.fingerprint and visible.fingerprint(job) != wanted.fingerprint):
        return False
    return (wanted.search is None and wanted.tag is None) or wanted.is_like(visible.job(job))


class _After(NamedTuple):
    """A place in a line: the score as the server prints it, and the member as it is stored. Empty: its beginning."""

    score: str = ""
    member: bytes = b""


Member = tuple[str, str, Route]
"""Score as the server prints it, job id, route."""


def _walk(
    store: Store, partitions: Sequence[Route], state: JobState, after: _Place | None, chunk_size: int
) -> Iterator[list[Member]]:
    """All members of a state's lines from a place on, merged over the partitions, in chunks."""
    descending = state in TERMINAL
    if state == JobState.LEASED:
        open_bundles(store, partitions)
    lines = _lines_of(store, partitions, state)
    begin = _After(after.score, after.id.encode()) if after else _After()
    first = _pages(store, [line for _, line in lines], begin, descending, chunk_size)
    walks = [
        _line(store, route, line, page, descending, chunk_size)
        for (route, line), page in zip(lines, first, strict=True)
    ]
    merged = heapq.merge(*walks, key=lambda member: (float(member[0]), member[1]), reverse=descending)
    chunk: list[Member] = []
    for member in merged:
        chunk.append(member)
        if len(chunk) == chunk_size:
            yield chunk
            chunk, chunk_size = [], CHUNK  # the first did not fill the page: a filter leaves most of them out
    if chunk:
        yield chunk


def _lines_of(store: Store, partitions: Sequence[Route], state: JobState) -> list[tuple[Route, str]]:
    """The sorted sets that hold jobs of a state: one of each partition, and for ``ready`` those of the jobs that are
    set aside too."""
    keys = {route: partition_keys(store.namespace, route) for route in partitions}
    lines = [(route, of.index(state)) for route, of in keys.items()]
    if state != JobState.READY or not lines:
        return lines

    def types_set_aside(client: Any) -> list[list[bytes]]:
        pipeline = client.pipeline(transaction=False)
        for of in keys.values():
            pipeline.hkeys(of.parked)
        return list(pipeline.execute())

    for (route, of), types in zip(keys.items(), store.read(types_set_aside), strict=True):
        lines += [(route, of.throttled), *((route, of.parked_of + name.decode()) for name in types)]
    return lines


def _pages(store: Store, lines: Sequence[str], after: _After, descending: bool, size: int) -> list[list[_After]]:
    """The members of each line that come next, in one round trip."""
    arguments = {
        "after_score": after.score,
        "after_id": after.member,
        "limit": size,
        "descending": "1" if descending else "",
    }
    replies = store.run_each("line_page", [Call(_LineKeys(line), arguments) for line in lines])
    return [
        [_After(score.decode(), member) for member, score in zip(reply[::2], reply[1::2], strict=True)]
        for reply in replies
    ]


def _line(store: Store, route: Route, line: str, page: list[_After], descending: bool, size: int) -> Iterator[Member]:
    """All members from this page of the line on, which was asked for with this size."""
    while True:
        for score, member in page:
            if member.startswith(BUNDLE_MARK):
                continue  # leased since the bundles were opened
            try:
                yield score, member.decode(), route
            except UnicodeDecodeError:
                continue  # no job: the line went bad
        if len(page) < size:
            return
        size, last = CHUNK, page[-1]
        [page] = _pages(store, [line], last, descending, size)


class _LineKeys:
    def __init__(self, line: str) -> None:
        self.line = line


def _read_all(read: Reader, chunk: Sequence[Member]) -> list[Job | None]:
    by_route: dict[Route, list[str]] = {}
    for _, job_id, route in chunk:
        by_route.setdefault(route, []).append(job_id)
    parts = [(route, part) for route, ids in by_route.items() for part in batches(ids, limit=READ_BATCH)]
    found: dict[str, Job | None] = {}
    for (_, ids), jobs in zip(parts, read(parts), strict=True):
        found.update(zip(ids, jobs, strict=True))
    return [found[job_id] for _, job_id, _ in chunk]


def _encode_cursor(place: _Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def _decode_cursor(cursor: str) -> _Place:
    try:
        raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        place = msgspec.json.decode(raw, type=_Place)
        JobState(place.state)
        if not _SCORE.match(place.score):
            raise ValueError(f"{place.score!r} is no score")
    except (ValueError, msgspec.MsgspecError) as error:
        raise OptionInvalid("This cursor is not one of ours.", fix="Start again without a cursor.") from error
    return place
