"""Carries out bulk operations, part by part. Any host takes the next part of any operation; one that dies leaves it to
another, and a job is acted on at most once all the same: each act compares what the job was when it was chosen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

import msgspec

from jobs.core.states import TERMINAL
from jobs.engine import BulkOperation, Engine, JobFilter, new_token
from jobs.engine.bulk import Part
from jobs.exceptions import JobNotFound, LeaseLost, OutcomeUnknown, SchedulerError, StoreUnavailable, WrongState
from jobs.runtime.relaying import Relay

log = logging.getLogger("jobs.bulk")

IDLE_SECONDS = 30.0
"""Nothing waits for this: a new operation is told of."""

BUSY_SECONDS = 5.0
"""After as long the service lets itself be asked how it is, and goes on."""

PART = 200
"""Jobs of one part: a fraction of a second, and as many as are in doubt when a host dies."""

LISTED = 1_000
"""Jobs that one stretch of the list may give."""

NEWS = "bulk"
"""The topic that tells hosts of a new operation."""

Outcomes = Mapping[str, SchedulerError | None]


class BulkWorker:
    name = "bulk"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._token = new_token()
        self.every = IDLE_SECONDS
        self._met: dict[str, dict[str, str]] = {}  # operation → job → the stretch of the list in which it was met

    def tick(self) -> dict[str, int]:
        """Works while there is something to do, for a few seconds at most."""
        until, handled = monotonic() + BUSY_SECONDS, 0
        while monotonic() < until:
            wait_ms = self.step()
            if wait_ms is None:
                self.every = IDLE_SECONDS
                break
            if wait_ms > 0:
                self.every = min(IDLE_SECONDS, wait_ms / 1000 + 0.005)
                break
            handled += 1
            self.every = 0.0
        return {"parts": handled}

    def step(self, id: str = "") -> int | None:
        """One part of any operation, or of this one. Ms until the next is due: 0 at once, None where there is none."""
        part = self._engine.bulk.take(self._token, id)
        if not isinstance(part, Part):
            return part
        try:
            if part.operation.state == "selecting":
                self._select(part)
            else:
                self._act(part)
        except LeaseLost:
            log.info("another host goes on with bulk operation %s", part.operation.id)
        return 0

    # --- choosing ---------------------------------------------------------------------------------------------------

    def _select(self, part: Part) -> None:
        """Looks through the next stretch of the list."""
        operation = part.operation
        if operation.request.undoes:
            self._select_done(part)
            return
        filter = operation.request.filter
        number, _, cursor = operation.cursor.partition("/")
        at = int(number or 0)
        # State by state, from where jobs come to where they go: one that moves on meanwhile is met there.
        here = msgspec.structs.replace(filter, states=(filter.states[at],))
        page = self._engine.jobs.page(here, cursor=cursor or None, limit=LISTED)
        if page.next_cursor:
            following = f"{at}/{page.next_cursor}"
        else:
            following = f"{at + 1}/" if at + 1 < len(filter.states) else ""
        ids = self._new([job.id for job in page.items], operation)
        self._engine.bulk.select(part, _parts(ids, operation), cursor=following, looked=page.scanned)
        if not following:
            self._met.pop(operation.id, None)

    def _new(self, ids: list[str], operation: BulkOperation) -> list[str]:
        """Those that were not met in the state that they came from. Ended jobs go nowhere."""
        if TERMINAL.issuperset(operation.request.filter.states):
            return ids
        met = self._met.setdefault(operation.id, {})
        # A stretch that could not be written down is looked through again, and gives the same.
        return [id for id in ids if met.setdefault(id, operation.cursor) == operation.cursor]

    def _select_done(self, part: Part) -> None:
        """Of the operation that is undone, the jobs that it was done to; a part of it becomes a part of this one."""
        undone = self._engine.bulk.get(part.operation.request.undoes)
        number = int(part.operation.cursor or 0)
        ids = [id for id, refused in self._engine.bulk.part(undone.id, number) if refused is None]
        more = str(number + 1) if number + 1 < min(undone.next, undone.parts) else ""
        self._engine.bulk.select(part, [ids] if ids else [], cursor=more, looked=len(ids))

    # --- acting -----------------------------------------------------------------------------------------------------

    def _act(self, part: Part) -> None:
        operation = part.operation
        pause_ms = int(len(part.ids) / operation.request.rate * 1000) if operation.request.rate else 0
        if operation.state == "stopping":
            # Its host died after somebody had stopped it: what it did of this part nobody knows.
            if operation.request.action == "move":
                _move(self._engine, part.ids, operation, only_finish=True)
            self._engine.bulk.settle(part, done=0, refused={}, unsure=len(part.ids), pause_ms=0)
            return
        outcomes = _ACTS[operation.request.action](self._engine, part.ids, operation)
        Relay(self._engine).tell_of(part.ids)
        refused = {id: error for id, error in outcomes.items() if error is not None}
        unsure = 0
        if part.again:
            lived_on = [id for id, error in refused.items() if _may_be_done(operation, error)]
            unsure = len(lived_on)
            refused = {id: error for id, error in refused.items() if id not in lived_on}
        told = {id: f"{error} {error.fix}".strip() for id, error in refused.items()}
        done = len(part.ids) - len(told) - unsure
        self._engine.bulk.settle(part, done=done, refused=told, unsure=unsure, pause_ms=pause_ms)


def _parts(ids: Sequence[str], operation: BulkOperation) -> list[Sequence[str]]:
    """Cut into what is acted on at once. A rate makes parts of about a second; a trial makes the first one small."""
    request = operation.request
    size = PART if request.rate is None else max(1, min(PART, int(request.rate)))
    first = request.trial if request.trial and not operation.total else 0
    rest = ids[first:] if first else ids
    head = [ids[:first]] if first and ids else []
    return [*head, *(rest[at : at + size] for at in range(0, len(rest), size))]


def _may_be_done(operation: BulkOperation, error: SchedulerError) -> bool:
    """Whether a refusal may mean that the host before had done it."""
    return isinstance(error, WrongState) or (operation.request.action == "discard" and isinstance(error, JobNotFound))


def frozen(filter: JobFilter) -> int | None:
    """Until when jobs had to have ended to be chosen, ms."""
    if filter.until is None or not TERMINAL.issuperset(filter.states):
        return None
    return int(filter.until.timestamp() * 1000)


def _resubmit(engine: Engine, ids: Sequence[str], operation: BulkOperation) -> Outcomes:
    return engine.jobs.resubmit_many(ids, ended_by_ms=frozen(operation.request.filter))


def _discard(engine: Engine, ids: Sequence[str], operation: BulkOperation) -> Outcomes:
    return engine.jobs.discard_many(ids, ended_by_ms=frozen(operation.request.filter))


def _cancel(engine: Engine, ids: Sequence[str], operation: BulkOperation) -> Outcomes:
    if operation.request.undoes:
        return _each(engine.jobs.cancel_waiting, ids)
    return _each(engine.jobs.cancel, ids)


def _run_now(engine: Engine, ids: Sequence[str], operation: BulkOperation) -> Outcomes:
    return _each(engine.jobs.run_now, ids)


def _move(engine: Engine, ids: Sequence[str], operation: BulkOperation, *, only_finish: bool = False) -> Outcomes:
    """A job that has ended here and lives nowhere yet would be lost: the same move asked again finishes it."""
    request = operation.request
    return engine.moving.move(
        ids, request.pool, move=operation.id, at_ms=operation.opened_at_ms, only_finish=only_finish
    )


def _prioritize(engine: Engine, ids: Sequence[str], operation: BulkOperation) -> Outcomes:
    return engine.jobs.prioritize_many(ids, operation.request.priority)


def _each(act: Callable[[str], object], ids: Sequence[str]) -> Outcomes:
    outcomes: dict[str, SchedulerError | None] = {}
    for id in ids:
        try:
            act(id)
            outcomes[id] = None
        except (StoreUnavailable, OutcomeUnknown):
            raise
        except SchedulerError as error:
            outcomes[id] = error
    return outcomes


_ACTS: dict[str, Callable[[Engine, Sequence[str], BulkOperation], Outcomes]] = {
    "resubmit": _resubmit,
    "discard": _discard,
    "cancel": _cancel,
    "run-now": _run_now,
    "move": _move,
    "prioritize": _prioritize,
}
