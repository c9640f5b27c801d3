"""Deciding over all jobs that match a filter, here and in batches, while somebody waits for the progress."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.api.jobs import cancel_each, discard_each, list_jobs, resubmit_each
from jobs.core.bulk import ALLOWED, LIVE
from jobs.core.job import moment
from jobs.core.states import TERMINAL, JobState
from jobs.core.wording import shown
from jobs.engine import JobFilter, get_engine
from jobs.exceptions import OptionInvalid, SchedulerError

BATCH = 100
FAILURES_KEPT = 1_000

RESUBMITTABLE = ALLOWED["resubmit"]


class BulkProgress(msgspec.Struct, kw_only=True):
    """How far it is. ``total`` was counted at the start, ``done`` were changed, ``failed_count`` were not.

    ``failed`` says why by job id, for the first 1,000 of them.
    """

    total: int
    done: int = 0
    failed_count: int = 0
    failed: dict[str, SchedulerError] = {}


def count_matching(filter: JobFilter) -> int:
    """How many jobs match now.

    Cheap for states and pool alone, and for ended ones also up to a moment; any other condition looks at each job.
    """
    if filter == JobFilter(states=filter.states, pool=filter.pool):
        pools = [pool for pool in get_engine().pools.all() if filter.pool in (None, pool.name)]
        return sum(pool.count(state.value) for pool in pools for state in filter.states or tuple(JobState))
    if _is_cheap(filter):
        return get_engine().jobs.count_ended(filter.states, pool=filter.pool, until=filter.until)
    return sum(len(ids) for ids in _matching(filter))


def resubmit_matching(
    filter: JobFilter, payload: Mapping[str, Any] | None = None, rate: float | None = None
) -> Iterator[BulkProgress]:
    """Resubmits the dead (or, if the filter says so, cancelled) jobs that match; yields after each batch.

    Jobs that arrive after the start are left alone, and so is one that dies again. ``payload`` replaces that of each;
    ``rate``: at most so many a second. Stops where the iteration stops. Raises OptionInvalid for a filter with other
    states; what goes wrong with single jobs is in the progress.
    """
    states = filter.states or (JobState.DEAD,)
    only_in(states, RESUBMITTABLE, "resubmitted")
    return _apply("job.resubmit", lambda ids: resubmit_each(ids, payload), _in_states(filter, states), rate)


def discard_matching(filter: JobFilter, rate: float | None = None) -> Iterator[BulkProgress]:
    """Removes for good the jobs that match: dead ones, unless the filter names states. As ``resubmit_matching``."""
    states = filter.states or (JobState.DEAD,)
    only_in(states, tuple(TERMINAL), "discarded")
    return _apply("job.discard", discard_each, _in_states(filter, states), rate)


def cancel_matching(filter: JobFilter, rate: float | None = None) -> Iterator[BulkProgress]:
    """Cancels the live jobs that match: waiting ones end at once, running ones are asked to stop.

    As ``resubmit_matching``; jobs that were created after the start are left alone.
    """
    states = filter.states or LIVE
    only_in(states, LIVE, "cancelled")
    # From where jobs come to where they go: one that moves on while we walk is met there.
    states = tuple(state for state in LIVE if state in states)
    until = filter.until or moment(get_engine().jobs.server_now_ms())
    return _apply("job.cancel", cancel_each, _in_states(msgspec.structs.replace(filter, until=until), states), rate)


def _is_cheap(filter: JobFilter) -> bool:
    """Whether no job need be looked at to count them: counters, or the ends of lines of ended jobs, are enough."""
    bare = JobFilter(states=filter.states, pool=filter.pool)
    if filter == bare:
        return True
    all_ended = bool(filter.states) and TERMINAL.issuperset(filter.states)
    return all_ended and filter == msgspec.structs.replace(bare, until=filter.until)


def count_within(filter: JobFilter, seconds: float) -> tuple[int, bool]:
    """As ``count_matching``, for at most so long: how many were found, and whether these are all."""
    if _is_cheap(filter):
        return count_matching(filter), True
    until, found = time.monotonic() + seconds, 0
    for ids in _matching(filter):
        found += len(ids)
        if time.monotonic() > until:
            return found, False
    return found, True


acount_matching = twin(count_matching)


async def acancel_matching(filter: JobFilter, rate: float | None = None) -> AsyncIterator[BulkProgress]:
    """The async twin of ``cancel_matching``."""
    async for progress in _stepwise(cancel_matching(filter, rate)):
        yield progress


async def aresubmit_matching(
    filter: JobFilter, payload: Mapping[str, Any] | None = None, rate: float | None = None
) -> AsyncIterator[BulkProgress]:
    """The async twin of ``resubmit_matching``."""
    async for progress in _stepwise(resubmit_matching(filter, payload, rate)):
        yield progress


async def adiscard_matching(filter: JobFilter, rate: float | None = None) -> AsyncIterator[BulkProgress]:
    """The async twin of ``discard_matching``."""
    async for progress in _stepwise(discard_matching(filter, rate)):
        yield progress


def only_in(states: Sequence[JobState], allowed: Sequence[JobState], what: str) -> None:
    """OptionInvalid where one of the states is not among those in which it can be done."""
    wrong = [state.value for state in states if state not in allowed]
    if wrong:
        words = ", ".join(sorted(state.value for state in allowed))
        raise OptionInvalid(f"Jobs that are {', '.join(wrong)} cannot be {what}", fix=f"Choose among: {words}.")


def _in_states(filter: JobFilter, states: Sequence[JobState]) -> JobFilter:
    return msgspec.structs.replace(filter, states=tuple(states))


Act = Callable[[Sequence[str]], Mapping[str, SchedulerError | None]]


def _apply(action: str, act: Act, filter: JobFilter, rate: float | None) -> Iterator[BulkProgress]:
    if rate is not None:
        refuse_rate(rate)
    return _recorded(action, act, filter, rate)


def refuse_rate(rate: float) -> None:
    """OptionInvalid where it is no number of jobs a second."""
    if not 0 < rate < float("inf"):
        raise OptionInvalid(f"rate: {shown(rate)} is not a number of jobs per second", fix="Write for example rate=10.")


def _recorded(action: str, act: Act, filter: JobFilter, rate: float | None) -> Iterator[BulkProgress]:
    """One entry in the audit log for all that was done, also where the walk was cut short."""
    progress = BulkProgress(total=count_matching(filter))
    try:
        yield from _batches(progress, act, filter, rate)
    finally:
        if progress.done:
            after = {"done": progress.done, "failed": progress.failed_count, "filter": narrowed_by(filter)}
            audit.record(action, "1 job" if progress.done == 1 else f"{progress.done:,} jobs", after=after)


def narrowed_by(filter: JobFilter) -> dict[str, Any]:
    """What narrows the selection."""
    fields = ((name, getattr(filter, name)) for name in JobFilter.__struct_fields__)
    return {name: value for name, value in fields if value}


def _batches(progress: BulkProgress, act: Act, filter: JobFilter, rate: float | None) -> Iterator[BulkProgress]:
    size = BATCH if rate is None else max(1, min(BATCH, int(rate)))
    started, sleeper = time.monotonic(), threading.Event()
    walks = (_matching(_in_states(filter, [state])) for state in filter.states)
    for page in chain.from_iterable(walks):
        for start in range(0, len(page), size):
            for id, problem in act(page[start : start + size]).items():
                if problem is None:
                    progress.done += 1
                    continue
                progress.failed_count += 1
                if len(progress.failed) < FAILURES_KEPT:
                    progress.failed[id] = problem
            yield progress
            if rate is not None:
                handled = progress.done + progress.failed_count
                sleeper.wait(max(0.0, started + handled / rate - time.monotonic()))


def _matching(filter: JobFilter) -> Iterator[list[str]]:
    """Ids of the matching jobs, page by page.

    Ended jobs are listed newest first, and the cursor says where the last page ended. So what ends after the start, a
    resubmitted job that died again among it, stands before the cursor and is not met.
    """
    cursor: str | None = None
    while True:
        page = list_jobs(filter, cursor=cursor, limit=1000)
        if page.items:
            yield [job.id for job in page.items]
        if page.next_cursor is None:
            return
        cursor = page.next_cursor


async def _stepwise(steps: Iterator[BulkProgress]) -> AsyncIterator[BulkProgress]:
    advance = twin(_next)
    while (progress := await advance(steps)) is not None:
        yield progress


def _next(steps: Iterator[BulkProgress]) -> BulkProgress | None:
    return next(steps, None)
