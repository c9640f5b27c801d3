"""Carries schedules from their rows to the store that fires them, and what they did back into the rows.

A row is pushed when its change is committed (``connect``). Everything else that can set the two apart - a bulk update,
a fixture, SQL, code, a push that found the store away, a store that was emptied or put back - is found by comparison:
one worker host at a time, the keeper, looks every second at the rows that are stamped as changed and at some of all
others in turn. Each step may be repeated by anybody at any time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator
from datetime import timedelta
from time import monotonic
from typing import Any, NamedTuple

from django.apps import AppConfig
from django.db import DatabaseError, connections, router, transaction
from django.db.models import Q, QuerySet
from django.db.models.signals import post_delete, post_migrate, post_save, pre_migrate
from django.utils import timezone

from jobs.core.job import moment
from jobs.core.schedule.definition import FIELDS
from jobs.core.schedule.plan import State, milliseconds_of
from jobs.engine import Engine, new_token
from jobs.engine.batches import batches
from jobs.models import Schedule, schedule_stamp
from jobs.services.carrying import Carried, carry, push_if_possible
from jobs.services.database import fresh_connections
from jobs.services.declarations import declare, declare_again

log = logging.getLogger("jobs.schedules")

HOLD_MS = 20_000
"""A keeper that has not looked for as long has another in its place."""
LOOK_SECONDS = 1.0
HELD_SECONDS = 13.8
"""So often the keeper says that it still is: with every fourteenth look."""
KEEPER_SECONDS = 8.0
"""So often the other hosts ask whether there is one."""
OVERLAP = timedelta(seconds=10)
"""Rows are looked at again for as long after their stamp: it is older than the commit that makes it visible."""
IN_TURN = 500
"""Rows of all that are looked at each second for changes without a stamp (see ``jobs.models.schedule_stamp``)."""
KEPT_SECONDS = 60.0
"""As long a connection of the keeper serves: to open one for each look would cost more than all that it asks."""
NOTES_SECONDS = 3.0
DECLARED_SECONDS = 20.0
BATCH = 500
TAKE_SECONDS = 0.5
"""A look that has taken in changed rows for as long leaves the rest to the next: what changed meanwhile comes first."""

COLUMNS = (*FIELDS, "paused_at", "pauses", "created_at", "version")


class Seen(NamedTuple):
    """What a row was like: whatever changes it counts up its version, unless its database knows no triggers."""

    version: int
    fingerprint: int


class Definitions:
    """The service of a worker host (``jobs.runtime.service``). The ticker fires nothing before its first comparison."""

    name = "definitions"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._me = new_token()
        self._pulse = ""
        self._is_keeper = False
        self._checked = threading.Event()
        self._doubts = 0  # how often somebody has asked for all to be compared
        self._declared_at = self._noted_at = float("-inf")
        self._has_declared = False
        self._seen: dict[str, Seen] = {}
        self._has_more = False
        self._stamp = self._latest = moment(0)  # the latest before which all is taken in; the latest that was seen
        self._stamped_at = float("-inf")
        self._turn = 0
        self._unsettled: list[str] = []  # who waits longest first
        self._held_at = float("-inf")
        self._count = 0  # of the definitions in the store, as far as is known
        self._lock = threading.Lock()
        self._notes: dict[str, State] = {}
        self._trouble = ""

    @property
    def every(self) -> float:
        if not self._checked.is_set():
            return 0.1
        if not self._is_keeper:
            return KEEPER_SECONDS
        return 0.0 if self._has_more and not self._trouble else LOOK_SECONDS

    @property
    def is_checked(self) -> bool:
        """Whether the store is known not to be older than the database."""
        return self._checked.is_set()

    def check_again(self) -> None:
        """The store has gone back in time: nothing is fired here until all was compared, from now on."""
        with self._lock:
            self._doubts += 1
            self._checked.clear()

    def note(self, name: str, state: State) -> None:
        """Keeps how far a schedule is, for its row. Thread-safe; costs no query."""
        with self._lock:
            self._notes[name] = state

    def tick(self) -> dict[str, int]:
        """One look. Raises StoreUnavailable; a database that is away is waited for, and schedules go on firing."""
        done, doubts = Carried(), self._doubts
        try:
            with fresh_connections(kept=KEPT_SECONDS if self._is_keeper else 0.0):
                self._declare()
                done = self._compare()
                self._write_notes()
            self._trouble = ""
        except DatabaseError as error:
            if str(error) != self._trouble:
                log.warning("Schedules keep firing as they are until the database can be read: %s", error)
            self._trouble = str(error)
        with self._lock:
            if doubts == self._doubts:  # else it went back in the midst of this
                self._checked.set()
        return {"pushed": done.pushed, "cleared": done.removed}

    def _compare(self) -> Carried:
        if self._is_keeper and self._checked.is_set() and monotonic() - self._held_at < HELD_SECONDS:
            return self._look()
        held = self._engine.duties.take(self.name, self._me, HOLD_MS)
        if not held and self._checked.is_set():
            self._is_keeper, self._pulse = False, ""
            return Carried()
        pulse = new_token() if held else ""
        is_same, fired_until, self._count = self._engine.schedules.pulse(self._pulse, pulse)
        is_known = is_same and self._is_keeper
        self._held_at = monotonic()
        self._is_keeper, self._pulse = held, pulse
        if not held:
            return self._check() if self._is_behind(fired_until) else Carried()
        if is_known and self._checked.is_set():
            return self._look()
        return self._check()

    def _stay_keeper(self) -> None:
        """In the middle of what takes long."""
        if self._is_keeper and monotonic() - self._held_at > HELD_SECONDS:
            self._is_keeper = self._engine.duties.take(self.name, self._me, HOLD_MS)
            self._held_at = monotonic()

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
            self._stay_keeper()
        self._turn, self._unsettled, self._has_more = 0, [*done.unsettled], False
        self._advance_stamp()
        done.removed = self._engine.schedules.remove(there - here)
        return done

    def _look(self) -> Carried:
        """Compares what is stamped as changed, some of the others, and the number of all, by which a name that went is
        missed though another came in its place. Of very many the newest come first, and the rest at the next looks."""
        number, done = _number_of_rows(), Carried()
        if not (number or self._count or self._seen or self._unsettled):
            return done
        turn = self._rows(Schedule.objects.filter(id__gt=self._turn).order_by("id")[:IN_TURN])
        self._turn = turn[-1][0] if len(turn) == IN_TURN else 0
        changed = [*self._stamped(), *(row[0] for row in turn if self._is_news(row))]
        if number != len(self._seen):  # some came without a stamp, or went
            known = dict(Schedule.objects.values_list("name", "id"))
            changed += (known[name] for name in known.keys() - self._seen.keys())
        self._take_in(dict.fromkeys(changed), done)
        self._advance_stamp()
        if not number == self._count == len(self._seen):
            there = set(self._engine.schedules.names())
            here = set(Schedule.objects.values_list("name", flat=True))
            done.removed = self._engine.schedules.remove(there - here)
            self._count = len(there & here)
            self._seen = {name: seen for name, seen in self._seen.items() if name in here}
        return done

    def _take_in(self, changed: Iterable[int], done: Carried) -> None:
        """Carries these rows, and those whose rhythm was not settled at the last look, as far as there is time; what is
        left of either comes with the next look."""
        parts = [*_parts("id", changed)]
        are_many = len(parts) > 1
        parts[1:1] = _parts("name", self._unsettled)  # neither keeps the other waiting
        left = dict.fromkeys(self._unsettled)
        self._has_more, until = False, monotonic() + TAKE_SECONDS
        for number, part in enumerate(parts, start=1):
            rows = list(Schedule.objects.filter(part))
            done.unsettled |= carry(self._engine, rows, every_state=True).unsettled
            # A row that was stamped and pushed at its commit is no news to the store, but to the ticker of this host.
            done.pushed += len(rows)
            self._remember(rows)
            for row in rows:
                left.pop(row.name, None)
            if number < len(parts) and monotonic() > until:
                self._has_more = are_many
                break
        else:
            left.clear()  # they have no rows any more
        self._unsettled = [*left, *done.unsettled - left.keys()]

    def _stamped(self) -> list[int]:
        """Rows that are stamped as changed, shortly before the last stamp or since, and are news; the newest first.

        Of the newest every column is compared. Where there are many more, as after a bulk update, of those the version
        is enough, for as long as late commits may bring older stamps; after that they need a look only with new ones.
        """
        recent = Schedule.objects.filter(changed_at__gt=self._stamp - OVERLAP)
        newest = self._rows(recent.order_by("-changed_at")[:IN_TURN])
        found = [row[0] for row in newest if self._is_news(row)]
        may_be_late = monotonic() - self._stamped_at < OVERLAP.total_seconds()
        if len(newest) < IN_TURN or not (found or may_be_late or self._has_more):
            return found
        others = recent.order_by("-changed_at").values_list("id", "name", "version")
        return [*found, *(row_id for row_id, name, version in others if self._version_of(name) != version)]

    @staticmethod
    def _rows(rows: QuerySet[Schedule]) -> list[tuple[Any, ...]]:
        """The id, and all that says what a schedule is."""
        return list(rows.values_list("id", *COLUMNS))

    def _is_news(self, row: tuple[Any, ...]) -> bool:
        _, name, *_ = row
        return self._seen.get(name) != _seen(row[1:])

    def _version_of(self, name: str) -> int | None:
        seen = self._seen.get(name)
        return seen and seen.version

    def _remember(self, rows: Iterable[Schedule]) -> None:
        for row in rows:
            self._seen[row.name] = _seen(tuple(getattr(row, column) for column in COLUMNS))
            self._latest = max(self._latest, row.changed_at)

    def _advance_stamp(self) -> None:
        """Not past rows that are still to be taken in, nor with a host whose clock is ahead of those of others."""
        latest = min(self._latest, timezone.now())
        if latest > self._stamp and not self._has_more:
            self._stamp, self._stamped_at = latest, monotonic()

    # --- the code's own ---------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        if not self._has_declared:
            declare()
            self._has_declared = True
        if monotonic() - self._declared_at < DECLARED_SECONDS:
            return
        declare_again()
        self._declared_at = monotonic()

    # --- what firing says to the rows ---------------------------------------------------------------------------------

    def _write_notes(self) -> None:
        if monotonic() - self._noted_at < NOTES_SECONDS:
            return
        self._noted_at = monotonic()
        with self._lock:
            notes, self._notes = self._notes, {}
        if not notes:
            return
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


# --- signals ----------------------------------------------------------------------------------------------------------


def connect(app: AppConfig) -> None:
    """Pushes each saved or deleted row when its transaction is committed; takes the code's in after ``migrate``."""
    pre_migrate.connect(_before_migrate, sender=app, dispatch_uid="jobs.definitions")
    post_migrate.connect(_after_migrate, sender=app, dispatch_uid="jobs.definitions")
    post_save.connect(_after_change, sender="jobs.Schedule", dispatch_uid="jobs.definitions")
    post_delete.connect(_after_change, sender="jobs.Schedule", dispatch_uid="jobs.definitions")


def _after_change(*, instance: Schedule, using: str, **_: Any) -> None:
    name = instance.name
    transaction.on_commit(lambda: push_if_possible(name), using=using, robust=True)


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


def _number_of_rows() -> int:
    """Asked each second for ever, and mostly for nothing: to make a query set costs several times as much."""
    connection = connections[router.db_for_read(Schedule)]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(Schedule._meta.db_table)}")  # noqa: S608  # our own name
        return int(cursor.fetchone()[0])


def _seen(values: tuple[Any, ...]) -> Seen:
    return Seen(values[-1], hash(repr(values)))


def _parts(column: str, values: Iterable[Any]) -> Iterator[Q]:
    """Conditions that together name all rows with these values: a database takes so many in one."""
    for part in batches(values, limit=BATCH):
        yield Q(**{f"{column}__in": part})


def _batches(rows: Any) -> Iterator[list[Schedule]]:
    last = 0
    while batch := list(rows.filter(id__gt=last)[:BATCH]):
        yield batch
        last = batch[-1].pk
