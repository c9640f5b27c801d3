"""Bulk operations: one thing done to all jobs that match a filter, or that were named.

``start`` writes an operation down that worker hosts carry out, whatever becomes of whoever asked for it; it can be
watched, cancelled, undone, and asked what became of each job. What does the work itself, while somebody waits for the
progress, is in ``jobs.api.matching``.
"""

from __future__ import annotations

import math
import re
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.api.jobs import NAMED, get_job, get_jobs
from jobs.api.matching import narrowed_by, only_in, refuse_rate
from jobs.core import options
from jobs.core.bulk import ALLOWED, LIVE, USUAL, BulkAction
from jobs.core.job import Job, moment
from jobs.core.wording import did_you_mean, shown
from jobs.engine import BulkOperation, BulkRequest, JobFilter, get_engine
from jobs.exceptions import OptionInvalid, OutcomeUnknown, StoreUnavailable, WrongState
from jobs.services.bulk import PART as CHOSEN_PART
from jobs.services.bulk import BulkWorker

DONE: dict[BulkAction, str] = {
    "resubmit": "resubmitted",
    "discard": "discarded",
    "cancel": "cancelled",
    "run-now": "run now",
    "move": "moved",
    "prioritize": "given another priority",
}

UNDO = "-undo"
"""What the id of an operation that takes another one back ends in."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,60}")

UNDO_SECONDS = 30.0
"""A discard of many begins after as long: until then nothing is gone, and it can be called off."""

MOVE_SECONDS = 10.0
"""So long a move of one job waits for the host that has taken it over."""


def start(
    action: BulkAction,
    filter: JobFilter,
    *,
    confirmed: int = 0,
    rate: float | None = None,
    trial: int = 0,
    id: str | None = None,
    begins_in: float | None = None,
    pool: str | None = None,
    priority: int | None = None,
) -> BulkOperation:
    """Has hosts do this to all jobs that match now (or matched at ``filter.until``), and answers the operation.

    It first writes down which they are. It acts by itself if these are at most ``confirmed``; else it waits for
    ``confirm``. ``trial``: after so many it waits again. ``id``: asking twice with the same one starts one operation.
    ``begins_in``: seconds during which it can be called off; 30 for a discard. ``pool``: where to move them;
    ``priority``: which they get. Raises OptionInvalid for states in which this cannot be done, for a pool that there is
    not, and for an id that is none; WrongState for one of another operation; BulkFull.
    """
    request = _request(action, filter, rate=rate, trial=max(0, trial), pool=pool, priority=priority)
    return _open(request, id, confirmed, begins_in)


def start_on(
    action: BulkAction,
    ids: Sequence[str],
    *,
    id: str | None = None,
    begins_in: float | None = None,
    pool: str | None = None,
    priority: int | None = None,
) -> BulkOperation:
    """The same with jobs that were named one by one: it acts by itself."""
    chosen = list(dict.fromkeys(ids))
    pools = {job.pool for job in get_jobs(chosen) if job is not None}
    filter = JobFilter(states=ALLOWED[action], pool=pools.pop() if len(pools) == 1 else None)
    request = _request(action, filter, chosen=len(chosen), pool=pool, priority=priority)
    parts = [chosen[at : at + CHOSEN_PART] for at in range(0, len(chosen), CHOSEN_PART)]
    return _open(request, id, len(chosen), begins_in, parts)


def move(id: str, pool: str) -> Job:
    """Moves a waiting job to another pool, and answers the job that goes on there: under an id of its own, with
    attempts counted anew and ``moved_from`` in its ``meta``. The one that it was ends as ``cancelled``; its result
    names its successor.

    JobNotFound; WrongState for one that does not wait, is a node of a workflow, or holds a unique key; OptionInvalid
    for a pool that there is not. OutcomeUnknown where a host that took it over has not finished: look at the job.
    """
    if refused := refusal_of_move(get_job(id), pool):
        raise refused
    operation = finish(start_on("move", [id], pool=pool).id, within=MOVE_SECONDS)
    if not operation.is_over:
        raise OutcomeUnknown(f"Job {id} is still being moved.", fix=f"See bulk operation {operation.id}.")
    for why in refusals(operation.id, 1).values():
        raise WrongState(why, state=None)
    if not operation.done:
        raise OutcomeUnknown(f"Whether job {id} was moved is not known.", fix=f"See bulk operation {operation.id}.")
    return get_job(str(get_job(id).result["moved_to"]))


def refusal_of_move(job: Job, pool: str) -> WrongState | None:
    """Why a move of this job would be refused as things stand: nobody need write an operation down for that."""
    return get_engine().moving.refusal(job, pool)


def _request(
    action: BulkAction,
    filter: JobFilter,
    *,
    pool: str | None,
    priority: int | None,
    rate: float | None = None,
    **facts: Any,
) -> BulkRequest:
    if rate is not None:
        refuse_rate(rate)
    if (action == "move") != (pool is not None) or (action == "prioritize") != (priority is not None):
        raise OptionInvalid("A move needs a pool, and nothing else does; so it is with a priority.")
    topology = get_engine().topology
    if pool is not None and not topology.has(options.check_pool("pool", pool)):
        raise OptionInvalid(f"pool: there is no pool {shown(pool)}", fix=did_you_mean(pool, topology.pools()))
    by = audit.actor()
    return BulkRequest(
        action=action,
        filter=_frozen(action, filter),
        by=by.who,
        source=by.source,
        reason=by.reason,
        rate=rate,
        pool=pool or "",
        priority=0 if priority is None else options.check_priority("priority", priority),
        **facts,
    )


def carry_out(id: str) -> BulkOperation:
    """Does what is left of an operation here, beside whoever else does, as far as it may go on now. BulkNotFound."""
    worker = BulkWorker(get_engine())
    while worker.step(id) == 0:
        pass
    return get(id)


def finish(id: str, *, within: float = math.inf) -> BulkOperation:
    """The same until it is over, or as far as it is after ``within`` seconds: another host may hold a part of it.

    For an operation that waits for nobody. BulkNotFound.
    """
    until = time.monotonic() + within
    while not (operation := carry_out(id)).is_over and time.monotonic() < until:
        time.sleep(0.02)
    return operation


def new_id() -> str:
    """An id for an operation that is about to be asked for: asking twice with it starts one. No command takes it for an
    option."""
    return secrets.token_hex(6)


def undo(id: str) -> BulkOperation:
    """Takes back what a resubmit did, as far as it has not begun: its jobs that still wait are cancelled.

    BulkNotFound; WrongState for an operation that cannot be taken back, or that has done nothing.
    """
    undone = get(id)
    if undone.is_over and not undone.handled:
        raise WrongState(f"Bulk operation {id} has done nothing that could be undone.", state=undone.state)
    if undone.request.action != "resubmit" or not undone.is_over:
        raise WrongState(
            f"Bulk operation {id} cannot be undone.",
            state=undone.state,
            fix="A resubmit can be, when it is over; a discard can be cancelled before it begins.",
        )
    by = audit.actor()
    request = BulkRequest(
        action="cancel",
        filter=JobFilter(states=LIVE),
        by=by.who,
        source=by.source,
        reason=by.reason or f"undoes {id}",
        undoes=id,
    )
    return _open(request, f"{id}{UNDO}", undone.total, 0.0)


def _open(
    request: BulkRequest,
    id: str | None,
    confirmed: int,
    begins_in: float | None,
    parts: Sequence[Sequence[str]] = (),
) -> BulkOperation:
    if id is not None and not request.undoes:
        _refuse_id(id)
    if begins_in is None:
        begins_in = UNDO_SECONDS if request.action == "discard" else 0.0
    engine, id = get_engine(), id or new_id()
    if engine.bulk.open(id, request, confirmed=confirmed, begins_ms=int(begins_in * 1000), parts=parts):
        facts: dict[str, Any] = {
            "confirmed": confirmed or None,
            "rate": request.rate,
            "undoes": request.undoes,
            "pool": request.pool,
        }
        if request.action == "prioritize":
            facts["priority"] = request.priority
        facts |= {"jobs": parts[0][:NAMED]} if parts else {"filter": narrowed_by(request.filter)}
        after = {name: value for name, value in facts.items() if value not in ("", None)}
        audit.record(f"job.{request.action}", f"bulk operation {id}", after=after)
        _tell_hosts()
    found = engine.bulk.get(id)
    if _order(found.request) != _order(request):
        raise WrongState(
            f"Bulk operation {id} is another one: {found.request.action}.", state=found.state, fix="Ask again."
        )
    return found


def _order(request: BulkRequest) -> BulkRequest:
    """What is to be done, whoever asks and at which moment: two requests with one id must agree in it."""
    filter = msgspec.structs.replace(request.filter, until=None)
    return msgspec.structs.replace(request, filter=filter, by="", source="", reason="")


def _refuse_id(id: str) -> None:
    if not _ID.fullmatch(id) or id.endswith(UNDO):
        raise OptionInvalid(
            f"id: {shown(id)} cannot name a bulk operation",
            fix=f"Write 1 to 60 of A-Z a-z 0-9 _ and -, not ending in {UNDO}; or leave it out.",
        )


def get(id: str) -> BulkOperation:
    """How an operation stands. BulkNotFound."""
    return get_engine().bulk.get(id)


def newest(limit: int = 100) -> list[BulkOperation]:
    """The operations that are kept, newest first; with what became of each job the last hundred are."""
    return get_engine().bulk.newest(limit)


def confirm(id: str, number: int) -> BulkOperation:
    """Agrees to so many jobs: an operation that waits goes on. BulkNotFound; WrongState for another number."""
    get_engine().bulk.confirm(id, number)
    audit.record("bulk.confirm", id, after={"confirmed": number})
    _tell_hosts()
    return get(id)


def stop(id: str) -> BulkOperation:
    """Cancels an operation: what was done stays done, the rest is as it was. BulkNotFound, WrongState."""
    get_engine().bulk.cancel(id)
    found = get(id)
    audit.record("bulk.cancel", id, after={"done": found.done, "total": found.total})
    _tell_hosts()
    return found


def results(id: str, *, first: int = 0) -> Iterator[tuple[str, str]]:
    """Each job from the part ``first`` on with what became of it: ``done``, ``waits``, or why it was not done.

    ``left as it was``: the operation was called off before.
    """
    operation = get(id)
    left = "left as it was" if operation.is_over else "waits"
    for number in range(first, operation.parts):
        for job, refused in get_engine().bulk.part(id, number):
            yield job, refused or ("done" if number < operation.next else left)


def refusals(id: str, limit: int = 100) -> dict[str, str]:
    """Why it was not done, by job, for the first of those."""
    return get_engine().bulk.refusals(id, limit)


def _tell_hosts() -> None:
    """They find it without; so they find it now."""
    with suppress(StoreUnavailable, OutcomeUnknown):
        get_engine().news.tell("bulk")


def _frozen(action: BulkAction, filter: JobFilter) -> JobFilter:
    """With the states that are meant, in the order in which they are walked, as of a moment."""
    states = filter.states or USUAL[action]
    only_in(states, ALLOWED[action], DONE[action])
    ordered = tuple(state for state in ALLOWED[action] if state in states)
    until = filter.until or moment(get_engine().jobs.server_now_ms())
    return msgspec.structs.replace(filter, states=ordered, until=until)


amove = twin(move, uses_database=True)
