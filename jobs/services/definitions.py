"""Carries schedules from their rows to the store that fires them, and what they did back into the rows.

A row is pushed when its change is committed (``connect``). Everything else that can set the two apart - a bulk update,
a fixture, SQL, code, a push that found the store away, a store that was emptied or put back - is found by comparison:
one worker host at a time, the keeper, looks every second at the rows that are stamped as changed and at some of all
others in turn. Each step may be repeated by anybody at any time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any

import msgspec
from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, router, transaction
from django.db.models import Q
from django.db.models.signals import post_delete, post_migrate, post_save, pre_migrate
from django.utils import timezone

from jobs.core.job import moment
from jobs.core.schedule import Cron, Interval, Rule
from jobs.core.schedule.definition import FIELDS
from jobs.core.schedule.plan import Plan, State, milliseconds_of
from jobs.engine import Engine, get_engine, new_token
from jobs.engine.schedules import Live, Put, Record
from jobs.exceptions import SchedulerError
from jobs.models import Schedule, schedule_stamp
from jobs.models.schedule import sentences
from jobs.registry import registry
from jobs.services.database import fresh_connections
from jobs.services.firing import planned_job

log = logging.getLogger("jobs.schedules")

HOLD_MS = 10_000
"""A keeper that has not looked for as long has another in its place."""
LOOK_SECONDS = 1.0
HELD_SECONDS = 6.8
"""So often the keeper says that it still is: with every seventh look."""
KEEPER_SECONDS = 5.0
"""So often the other hosts ask whether there is one."""
OVERLAP = timedelta(seconds=10)
"""Rows are looked at again for as long after their stamp: it is older than the commit that makes it visible."""
IN_TURN = 500
"""Rows of all that are looked at each second for changes without a stamp (see ``jobs.models.schedule_stamp``)."""
FRESH_MS = 2_500
"""A rule that was changed so lately begins at its change, any other when it is found."""
NOTES_SECONDS = 3.0
DECLARED_SECONDS = 20.0
WITHDRAWN = timedelta(seconds=90)
"""A schedule of the code that no live host has declared for as long is no more."""
PATIENCE_SECONDS = 1.5
"""How long a commit waits for the store: what it could not push is found by comparison."""
BATCH = 500

COLUMNS = (*FIELDS, "paused_at", "pauses", "created_at", "version")
UNKNOWN = "the store was emptied: it is not known whether they fired"
WITHDRAWN_WORDS = "The code does not declare it any more."


@dataclass(kw_only=True)
class Carried:
    """What one comparison wrote to the store."""

    pushed: int = 0
    removed: int = 0
    unsettled: set[str] = field(default_factory=set)
    """Schedules whose new rhythm waits for a firing that is due already."""


class Definitions:
    """The service of a worker host (``jobs.runtime.service``). The ticker fires nothing before its first comparison."""

    name = "definitions"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._me = new_token()
        self._pulse = ""
        self._is_keeper = False
        self._checked = threading.Event()
        self._declared_at = self._noted_at = float("-inf")
        self._has_declared = False
        self._seen: dict[str, int] = {}
        self._stamp = moment(0)
        self._turn = 0
        self._unsettled: set[str] = set()
        self._held_at = float("-inf")
        self._count = 0  # of the definitions in the store, as far as is known
        self._lock = threading.Lock()
        self._notes: dict[str, State] = {}
        self._trouble = ""

    @property
    def every(self) -> float:
        if not self._checked.is_set():
            return 0.1
        return LOOK_SECONDS if self._is_keeper else KEEPER_SECONDS

    @property
    def is_checked(self) -> bool:
        """Whether the store is known not to be older than the database."""
        return self._checked.is_set()

    def check_again(self) -> None:
        """The store has gone back in time: nothing is fired here until all was compared."""
        self._checked.clear()

    def note(self, name: str, state: State) -> None:
        """Keeps how far a schedule is, for its row. Thread-safe; costs no query."""
        with self._lock:
            self._notes[name] = state

    def tick(self) -> dict[str, int]:
        """One look. Raises StoreUnavailable; a database that is away is waited for, and schedules go on firing."""
        done = Carried()
        try:
            with fresh_connections():
                self._declare()
                done = self._compare()
                self._write_notes()
            self._trouble = ""
        except DatabaseError as error:
            if str(error) != self._trouble:
                log.warning("Schedules keep firing as they are until the database can be read: %s", error)
            self._trouble = str(error)
        self._checked.set()
        return {"pushed": done.pushed, "cleared": done.removed}

    def _compare(self) -> Carried:
        if self._is_keeper and self._checked.is_set() and monotonic() - self._held_at < HELD_SECONDS:
            return self._look()
        held = self._engine.duties.take(self.name, self._me, HOLD_MS)
        pulse = new_token() if held else ""
        is_same, fired_until, self._count = self._engine.schedules.pulse(self._pulse, pulse)
        is_known = is_same and self._is_keeper
        self._held_at = monotonic()
        self._is_keeper, self._pulse = held, pulse
        if not self._checked.is_set() and not held:
            return self._check() if self._is_behind(fired_until) else Carried()
        if not held:
            return Carried()
        if is_known and self._checked.is_set():
            return self._look()
        return self._check()

    def _is_behind(self, fired_until: int) -> bool:
        """Whether the database knows of later firings than the store, which was put back or emptied."""
        latest = Schedule.objects.order_by("-last_fired_at").values_list("last_fired_at", flat=True)
        last = latest.exclude(last_fired_at=None).first()
        return (last is not None and milliseconds_of(last) > fired_until) or (self._count < Schedule.objects.count())

    def _check(self) -> Carried:
        """Compares everything."""
        there = set(self._engine.schedules.names())
        done, here = Carried(), set()
        self._seen = {}
        for rows in _batches(Schedule.objects.order_by("id")):
            carried = carry(self._engine, rows, every_state=True)
            done.pushed += carried.pushed
            done.unsettled |= carried.unsettled
            here |= {row.name for row in rows}
            self._remember(rows)
        self._turn, self._unsettled = 0, done.unsettled
        done.removed = self._engine.schedules.remove(there - here)
        return done

    def _look(self) -> Carried:
        """Compares what is stamped as changed, some of the others, and the number of all, by which a name that went is
        missed though another came in its place."""
        turn = list(Schedule.objects.filter(id__gt=self._turn).order_by("id")[:IN_TURN].values_list("id", *COLUMNS))
        self._turn = turn[-1][0] if len(turn) == IN_TURN else 0
        stamped = Schedule.objects.filter(changed_at__gt=self._stamp - OVERLAP).values_list("id", *COLUMNS)
        changed = {row[0] for row in (*turn, *stamped) if self._seen.get(row[1]) != _fingerprint(row[1:])}
        number, done = Schedule.objects.count(), Carried()
        if number != len(self._seen):  # some came without a stamp, or went
            known = dict(Schedule.objects.values_list("name", "id"))
            changed |= {known[name] for name in known.keys() - self._seen.keys()}
        if changed or self._unsettled:
            rows = list(Schedule.objects.filter(Q(id__in=changed) | Q(name__in=self._unsettled)))
            self._unsettled = carry(self._engine, rows, every_state=True).unsettled
            # A row that was stamped and pushed at its commit is no news to the store, but to the ticker of this host.
            done.pushed = len(rows)
            self._remember(rows)
        if not number == self._count == len(self._seen):
            there = set(self._engine.schedules.names())
            here = set(Schedule.objects.values_list("name", flat=True))
            done.removed = self._engine.schedules.remove(there - here)
            self._count = len(there & here)
            self._seen = {name: seen for name, seen in self._seen.items() if name in here}
        return done

    def _remember(self, rows: Iterable[Schedule]) -> None:
        for row in rows:
            self._seen[row.name] = _fingerprint(tuple(getattr(row, column) for column in COLUMNS))
            self._stamp = max(self._stamp, row.changed_at)

    # --- the code's own ---------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        if not self._has_declared:
            declare()
            self._has_declared = True
        if monotonic() - self._declared_at < DECLARED_SECONDS:
            return
        now = timezone.now()
        of_code = Schedule.objects.filter(owner=Schedule.Owner.CODE)
        here = of_code.filter(name__in=declared())
        here.update(declared_at=now)
        here.filter(enabled=False).update(enabled=True, error="")
        of_code.filter(enabled=True, declared_at__lt=now - WITHDRAWN).update(enabled=False, error=WITHDRAWN_WORDS)
        self._declared_at = monotonic()

    # --- what firing says to the rows ---------------------------------------------------------------------------------

    def _write_notes(self) -> None:
        if monotonic() - self._noted_at < NOTES_SECONDS:
            return
        with self._lock:
            notes, self._notes = self._notes, {}
        self._noted_at = monotonic()
        try:
            with transaction.atomic(router.db_for_write(Schedule)):
                for name, state in notes.items():
                    _write(name, state)
        except DatabaseError:
            with self._lock:
                self._notes = notes | self._notes
            raise


def _write(name: str, state: State) -> None:
    last = moment(state.last) if state.last else None
    row = Schedule.objects.filter(name=name)
    if last is not None:
        row = row.filter(Q(last_fired_at=None) | Q(last_fired_at__lte=last))
    row.update(last_fired_at=last, firings=state.firings, error=state.error)


# --- carrying --------------------------------------------------------------------------------------------------------


def carry(engine: Engine, rows: Collection[Schedule], *, every_state: bool = False) -> Carried:
    """Makes the store's definitions equal to these rows. ``every_state``: looks also at states of equal definitions.

    A row that cannot be a schedule is stored as one that never fires, and says why.
    """
    plans = {row: _plan_of(row) for row in rows}
    digests = dict(zip(plans, engine.schedules.digests([row.name for row in rows]), strict=True))
    differing = [row for row, plan in plans.items() if every_state or digests[row] != plan.stored.digest]
    done = Carried()
    if not differing:
        return done
    now = engine.schedules.server_now_ms()
    known = engine.schedules.read([row.name for row in differing])
    wanted = (_put(engine, plans[row], row, live, now) for row, live in zip(differing, known, strict=True))
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


def _plan_of(row: Schedule) -> Plan:
    try:
        plan = Plan(row.stored())
    except SchedulerError as error:
        _say(row, sentences(error))
        return Plan(_never(row))
    if row.error and row.error != WITHDRAWN_WORDS and not row.last_fired_at:
        _say(row, "")
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


# --- what the code declares -------------------------------------------------------------------------------------------


def declared() -> dict[str, Rule]:
    """The schedules of this process's code: name of the job type → rule."""
    return {job_type.name: job_type.schedule for job_type in registry.all().values() if job_type.schedule is not None}


def declare(using: str | None = None) -> None:
    """Makes the rows of the code's schedules equal to their declarations. A row of a person keeps its name."""
    rows = Schedule.objects.using(using or router.db_for_write(Schedule))
    for name, rule in declared().items():
        row = rows.filter(name=name).first() or Schedule(name=name, owner=Schedule.Owner.CODE)
        if row.owner != Schedule.Owner.CODE:
            log.warning("The schedule %s of the code is not taken in: a schedule of a person has its name", name)
            continue
        fields = _declaration(name, rule)
        if not row._state.adding and all(getattr(row, option) == value for option, value in fields.items()):
            continue
        for option, value in fields.items():
            setattr(row, option, value)
        row.declared_at, row.changed_by, row.error = timezone.now(), "code", ""
        try:
            row.save(using=using)
        except ValidationError as error:
            log.error("The schedule %s of the code cannot be stored: %s", name, "; ".join(error.messages))


def _declaration(name: str, rule: Rule) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "job_type": name,
        "kind": rule.kind,
        "cron": "",
        "interval_seconds": None,
        "timezone": settings.TIME_ZONE,
        "starts_at": None,
        "enabled": True,
    }
    if isinstance(rule, Cron):
        fields |= {"cron": rule.expression, "timezone": rule.timezone or settings.TIME_ZONE}
    elif isinstance(rule, Interval):
        fields |= {"interval_seconds": rule.every.total_seconds(), "starts_at": rule.anchor}
    return fields


# --- signals ----------------------------------------------------------------------------------------------------------


def connect(app: AppConfig) -> None:
    """Pushes each saved or deleted row when its transaction is committed; takes the code's in after ``migrate``."""
    pre_migrate.connect(_before_migrate, sender=app, dispatch_uid="jobs.definitions")
    post_migrate.connect(_after_migrate, sender=app, dispatch_uid="jobs.definitions")
    post_save.connect(_after_change, sender="jobs.Schedule", dispatch_uid="jobs.definitions")
    post_delete.connect(_after_change, sender="jobs.Schedule", dispatch_uid="jobs.definitions")


def _after_change(*, instance: Schedule, using: str, **_: Any) -> None:
    name = instance.name
    transaction.on_commit(lambda: _push_if_possible(name), using=using, robust=True)


def _push_if_possible(name: str) -> None:
    engine = get_engine()
    try:
        with engine.store.budget(PATIENCE_SECONDS):
            push([name])
    except SchedulerError as error:
        log.warning("The schedule %s reaches the store when that is back: %s", name, error)


def _before_migrate(*, using: str, **_: Any) -> None:
    if router.allow_migrate_model(using, Schedule):
        schedule_stamp.take_away(using)


def _after_migrate(*, using: str, **_: Any) -> None:
    if not router.allow_migrate_model(using, Schedule):
        return
    try:
        schedule_stamp.put(using)
        declare(using)
    except DatabaseError as error:
        # Migrated only part of the way, or back to nothing: the tables are not what this code expects.
        log.info("The schedules of the code were not taken into the database: %s", error)


# --- small parts ------------------------------------------------------------------------------------------------------


def _fingerprint(values: tuple[Any, ...]) -> int:
    return hash(repr(values))


def _batches(rows: Any) -> Iterator[list[Schedule]]:
    last = 0
    while batch := list(rows.filter(id__gt=last)[:BATCH]):
        yield batch
        last = batch[-1].pk
