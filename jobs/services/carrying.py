"""Makes the store's copies of schedules equal to their rows, without firing anything twice or making anything up.

Each call may be repeated by anybody at any time: it compares, and writes what differs.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec

from jobs.core.schedule.plan import Plan, State, milliseconds_of
from jobs.engine import Engine, get_engine
from jobs.engine.schedules import Live, Put, Record
from jobs.exceptions import SchedulerError
from jobs.models import Schedule
from jobs.models.schedule import sentences
from jobs.services.declarations import WITHDRAWN_WORDS
from jobs.services.firing import planned_job

log = logging.getLogger("jobs.schedules")

FRESH_MS = 2_500
"""A rule that was changed so lately begins at its change, any other when it is found."""
PATIENCE_SECONDS = 1.5
"""How long a commit waits for the store."""
UNKNOWN = "the store was emptied: it is not known whether they fired"


@dataclass(kw_only=True)
class Carried:
    """What one comparison wrote to the store."""

    pushed: int = 0
    removed: int = 0
    unsettled: set[str] = field(default_factory=set)
    """Schedules whose new rhythm waits for a firing that is due already."""


def carry(engine: Engine, rows: Collection[Schedule], *, every_state: bool = False) -> Carried:
    """Makes the store's definitions equal to these rows. ``every_state``: looks also at states of equal definitions.

    A row that cannot be a schedule is stored as one that never fires, and says why.
    """
    digests = engine.schedules.digests([row.name for row in rows])
    equal = {row for row, digest in zip(rows, digests, strict=True) if digest is not None and digest == _digest(row)}
    looked_at = [row for row in rows if every_state or row not in equal]
    known = dict(zip(looked_at, engine.schedules.read([row.name for row in looked_at]), strict=True))
    differing = {row: live for row, live in known.items() if not (row in equal and _goes_on(row, live))}
    done = Carried()
    if not differing:
        return done
    now = engine.schedules.server_now_ms()
    wanted = (_put(engine, _plan_of(row, live), row, live, now) for row, live in differing.items())
    puts = [put for put in wanted if put is not None]
    forced, others = [put for put in puts if put.forced], [put for put in puts if not put.forced]
    engine.schedules.put(forced, at=now, forced=True)
    answers = engine.schedules.put(others, at=now)
    # Claimed just now: what is due of it is dealt with under the old rhythm, and the new one begins after it.
    busy = [put._replace(state=None, edited_at=now) for put, stored in zip(others, answers, strict=True) if not stored]
    engine.schedules.put(busy, at=now)
    done.pushed = len(puts)
    done.unsettled = {put.stored.name for put in (*others, *busy) if put.edited_at == now}
    return done


def _digest(row: Schedule) -> str | None:
    try:
        return row.unchecked().digest
    except (TypeError, ValueError, msgspec.MsgspecError):  # of what plain SQL wrote
        return None


def _goes_on(row: Schedule, live: Live) -> bool:
    """Whether the state of an unchanged schedule needs no look: it goes on from where the row knows it to be.

    For all but a few this is all that is asked when a host begins, however many there are.
    """
    state = live.state
    if state is None or live.kept is None or state.rhythm != live.kept.stored.rhythm:
        return False
    if state.nominal is None:
        return not row.enabled
    return row.last_fired_at is None or state.nominal > milliseconds_of(row.last_fired_at)


def _plan_of(row: Schedule, live: Live) -> Plan:
    """A row that cannot be a schedule says why; what was wrong with one that is mended is over."""
    try:
        plan = Plan(row.stored())
    except SchedulerError as error:
        _say(row, sentences(error))
        return Plan(_never(row))
    if row.error != WITHDRAWN_WORDS:
        _say(row, live.state.error if live.state else "")
    return plan


def _say(row: Schedule, error: str) -> None:
    if row.error != error:
        Schedule.objects.filter(pk=row.pk).update(error=error)
        row.error = error


def _never(row: Schedule) -> Any:
    """What stands in the store for a row that cannot be a schedule."""
    stand_in = Schedule(name=row.name, job_type=row.job_type or "?", cron="@yearly", timezone="UTC", enabled=False)
    stand_in.created_at, stand_in.version = row.created_at, row.version
    return stand_in.stored()


def _put(engine: Engine, plan: Plan, row: Schedule, live: Live, now: int) -> Put | None:
    """What is to be written for a row; None where nothing is."""
    last = milliseconds_of(row.last_fired_at) if row.last_fired_at else 0
    state, stored = live.state, plan.stored
    if live.kept is not None and live.kept.stored.created_at != stored.created_at:
        # Another row had the name, and went while nobody could say so: what it did is not what this one did.
        begun = plan.begin(_start(plan, row, State(None), now), before=State(None, firings=row.firings))
        return Put(stored, live.raw_state, *_begun(engine, plan, begun), forced=True)
    is_same = live.kept is not None and live.kept.stored.digest == stored.digest
    if state is None:
        before = State(None, firings=row.firings, last=last)
        begun = plan.begin(_start(plan, row, before, now), before=before)
        return Put(stored, live.raw_state, *_begun(engine, plan, begun), record=_gap(plan, row, last, now))
    if last and state.nominal is not None and state.nominal <= last:  # the store was put back
        before = msgspec.structs.replace(state, firings=max(state.firings, row.firings), last=last, held=None)
        begun = plan.begin(max(now, last), before=before)
        return Put(stored, live.raw_state, *_begun(engine, plan, begun), forced=True)
    is_over = state.nominal is None and stored.definition.enabled and plan.is_open(state)
    if state.rhythm == stored.rhythm and not is_over:
        edited_at = live.kept.edited_at if live.kept else 0
        return None if is_same else Put(stored, live.raw_state, None, edited_at=edited_at)
    if state.nominal is not None and state.act_at <= now:
        return Put(stored, live.raw_state, None, edited_at=now)  # due already: it is dealt with first
    begun = plan.begin(_start(plan, row, state, now), before=state)
    if is_over and is_same and begun.nominal is None:
        return None
    return Put(stored, live.raw_state, *_begun(engine, plan, begun))


def _begun(engine: Engine, plan: Plan, state: State) -> tuple[State, int | None]:
    state = msgspec.structs.replace(state, job=planned_job(engine, plan.definition, state.nominal))
    return state, None if state.nominal is None else state.act_at


def _start(plan: Plan, row: Schedule, state: State, now: int) -> int:
    """After which time the rhythm begins: nothing is made up for what was before the change."""
    run_at = plan.definition.run_at
    if run_at is not None and plan.definition.kind == "once":
        return milliseconds_of(run_at) - 1 if state.last < milliseconds_of(run_at) else now
    changed = milliseconds_of(row.changed_at)
    return max(changed if now - FRESH_MS <= changed <= now else now, state.last)


def _gap(plan: Plan, row: Schedule, last: int, now: int) -> Record | None:
    """What may or may not have fired before the store was emptied."""
    first = plan.next_after(last) if last and plan.definition.kind != "once" else None
    if first is None or first > now or plan.stored.paused:
        return None
    return Record(due=first, at=now, outcome="skipped", reason=UNKNOWN, until=now, count=None)


def push(names: Collection[str]) -> None:
    """Carries these schedules as they are in the database now; what has no row is removed. Raises StoreUnavailable."""
    engine = get_engine()
    rows = list(Schedule.objects.filter(name__in=names))
    carry(engine, rows)
    engine.schedules.remove(set(names) - {row.name for row in rows})


def push_if_possible(name: str) -> None:
    """The same for one, as far as the store is there: what could not be pushed is found by comparison."""
    engine = get_engine()
    try:
        with engine.store.budget(PATIENCE_SECONDS):
            push([name])
    except SchedulerError as error:
        log.warning("The schedule %s reaches the store when that is back: %s", name, error)
