"""Deciding over all jobs that match a filter, in batches, while somebody watches the progress."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from jobs.api.asynchronous import twin
from jobs.api.jobs import discard_many, list_jobs, resubmit_many
from jobs.core.states import TERMINAL, JobState
from jobs.core.wording import shown
from jobs.engine import JobFilter, get_engine
from jobs.exceptions import OptionInvalid, SchedulerError

BATCH = 100
FAILURES_KEPT = 1_000

RESUBMITTABLE = (JobState.DEAD, JobState.CANCELLED)


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
    all_ended = bool(filter.states) and TERMINAL.issuperset(filter.states)
    if all_ended and filter == JobFilter(states=filter.states, pool=filter.pool, until=filter.until):
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
    _only(states, RESUBMITTABLE, "resubmitted")
    return _apply(lambda ids: resubmit_many(ids, payload), msgspec.structs.replace(filter, states=states), rate)


def discard_matching(filter: JobFilter, rate: float | None = None) -> Iterator[BulkProgress]:
    """Removes for good the jobs that match: dead ones, unless the filter names states. As ``resubmit_matching``."""
    states = filter.states or (JobState.DEAD,)
    _only(states, tuple(TERMINAL), "discarded")
    return _apply(discard_many, msgspec.structs.replace(filter, states=states), rate)


acount_matching = twin(count_matching)


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


def _only(states: Sequence[JobState], allowed: Sequence[JobState], what: str) -> None:
    wrong = [state.value for state in states if state not in allowed]
    if wrong:
        words = ", ".join(sorted(state.value for state in allowed))
        raise OptionInvalid(f"Jobs that are {', '.join(wrong)} cannot be {what}", fix=f"Choose among: {words}.")


def _apply(
    act: Callable[[Sequence[str]], Mapping[str, SchedulerError | None]], filter: JobFilter, rate: float | None
) -> Iterator[BulkProgress]:
    if rate is not None and not 0 < rate < float("inf"):
        raise OptionInvalid(f"rate: {shown(rate)} is not a number of jobs per second", fix="Write for example rate=10.")
    return _batches(act, filter, rate)


def _batches(
    act: Callable[[Sequence[str]], Mapping[str, SchedulerError | None]], filter: JobFilter, rate: float | None
) -> Iterator[BulkProgress]:
    progress = BulkProgress(total=count_matching(filter))
    size = BATCH if rate is None else max(1, min(BATCH, int(rate)))
    started, sleeper = time.monotonic(), threading.Event()
    for page in _matching(filter):
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
