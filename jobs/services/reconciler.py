"""Carries what people edit in the database to the engine, and what the code registers into the database.

The rows own the overrides of job types and the slots of pools; Redis holds a copy for producers and workers. A save in
the admin pushes its rows on commit (``push_types``, ``push_pools``). Everything else that can set the two apart - a
flushed Redis, a bulk update, a fixture, a push that found Redis down - is healed by ``reconcile``, which every worker
host runs every few seconds: it compares all rows with the copy and writes what differs. Each step may be repeated by
anybody at any time, so there is no leader, and what a host that woke up late did is undone by the next tick.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import msgspec
from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured, ValidationError
from django.db import DatabaseError, close_old_connections, router, transaction
from django.db.models.signals import post_migrate
from django.utils import timezone

from jobs.conf import get_settings
from jobs.engine import Engine, PoolSettings, get_engine
from jobs.exceptions import OptionInvalid, OutcomeUnknown, SchedulerError, StoreUnavailable, WrongState
from jobs.models import JobType, Pool
from jobs.models.job_type import OVERRIDABLE
from jobs.models.pool import SETTINGS
from jobs.registry import JobType as RegisteredType
from jobs.registry import registry

log = logging.getLogger(__name__)

Rows = tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]

COMPARE_SECONDS = 60.0
"""The store is compared as often though nobody told of a change: it may have been put back to an older state."""

NOTHING_SET: dict[str, Any] = dict.fromkeys(SETTINGS)
"""What a pool without a row is told."""


@dataclass(frozen=True, kw_only=True)
class Registered:
    """What one ``register`` changed: names of job types, and of pools that got their first row."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Reconciled:
    """What one ``reconcile`` or push wrote to the engine. ``refused``: rows that the engine did not take, and why."""

    pushed: int = 0
    cleared: int = 0
    refused: dict[str, str] = field(default_factory=dict)


class Reconciler:
    """The service of a worker host (``jobs.runtime.service``). Its first tick also takes the code's job types in.

    It looks at the rows each time. The store is asked where they have changed, where somebody has told that something
    was changed there, and now and then all the same.
    """

    name = "reconciler"
    every = 10.0

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._registered = False
        self._trouble = ""
        self._compared: Rows | None = None
        self._compare_at = float("-inf")

    def hear(self) -> None:
        """Something was changed in the store, or it was emptied: rows are no longer known to be there."""
        self._compared = None

    def tick(self) -> dict[str, int]:
        """One comparison. Raises StoreUnavailable; a database that is away or not migrated is waited for."""
        done = Reconciled()
        close_old_connections()
        try:
            if not self._registered:
                register()
                self._registered = True
            if self._has_to_compare(rows := _rows()):
                self._compared = None  # a comparison that fails is to be made again
                done = reconcile(self._engine)
                self._compared, self._compare_at = rows, monotonic() + COMPARE_SECONDS
            self._trouble = ""
        except DatabaseError as error:
            if str(error) != self._trouble:
                log.warning("Job types and pools keep their settings until the database can be read: %s", error)
            self._trouble = str(error)
        finally:
            close_old_connections()
        return {"pushed": done.pushed, "cleared": done.cleared, "refused": len(done.refused)}

    def _has_to_compare(self, rows: Rows) -> bool:
        return rows != self._compared or monotonic() >= self._compare_at


def register(using: str | None = None) -> Registered:
    """Copies the registry of this process into the rows: new types, changed declarations, types that are gone.

    Overrides are never touched, and nothing is deleted: another deployment may still run the type. Pools that the
    settings or a job type name get a row, so that they can be found and given slots in the admin.
    """
    alias = using or router.db_for_write(JobType)
    known = {job_type.name: _declaration(job_type) for job_type in registry.all().values()}
    now = timezone.now()
    with transaction.atomic(alias):
        types = JobType.objects.using(alias)
        rows = {row.name: row for row in types.all()}
        added = sorted(known.keys() - rows.keys())
        gone = sorted(name for name, row in rows.items() if row.registered and name not in known)
        changed = sorted(name for name in known.keys() & rows.keys() if _differs(rows[name], known[name]))
        types.bulk_create([JobType(name=name, last_seen=now, **known[name]) for name in added], ignore_conflicts=True)
        for name in changed:
            types.filter(name=name).update(**known[name])
        types.filter(name__in=gone).update(registered=False)
        types.filter(name__in=known).update(registered=True, last_seen=now)

        pools = Pool.objects.using(alias)
        new_pools = sorted(declared_pools() - set(pools.values_list("name", flat=True)))
        pools.bulk_create([Pool(name=name) for name in new_pools], ignore_conflicts=True)
    return Registered(added=tuple(added), changed=tuple(changed), gone=tuple(gone), pools=tuple(new_pools))


def declared_pools() -> set[str]:
    """The pools that this project's settings and code name."""
    return {"default", *get_settings().pools, *(job_type.pool for job_type in registry.all().values())}


def reconcile(engine: Engine | None = None) -> Reconciled:
    """Makes the engine's copy equal to the rows. When nothing differs, it costs two queries and two reads.

    A row whose value the engine refuses is logged and passed over. Raises StoreUnavailable.
    """
    engine = engine or get_engine()
    # The copy is read before the rows: a row saved in between is then seen as new, never taken for an old one.
    types_there = engine.types.all()
    pools_there = {name: _set_by_people(settings) for name, settings in engine.pools.settings().items()}
    types_here, pools_here = _rows()

    done = Reconciled()
    for name in types_there.keys() | types_here.keys():
        wanted = types_here.get(name)
        if name not in types_there or wanted != _as_dict(types_there[name]):
            _push_type(engine, done, name, wanted)
    for name in pools_there.keys() | pools_here.keys():
        wanted = pools_here.get(name, NOTHING_SET)
        if pools_there.get(name, NOTHING_SET) != wanted:
            _push_pool(engine, done, name, wanted)
    if done.pushed or done.cleared:
        log.info("Reconciled the engine with the database: %d pushed, %d cleared", done.pushed, done.cleared)
    return done


def _rows() -> Rows:
    """What the database wants: overrides of job types, settings of pools."""
    return (
        {row.name: row.overrides for row in JobType.objects.all() if row.is_overridden},
        {row.name: row.settings for row in Pool.objects.all()},
    )


def push_types(names: Collection[str]) -> Reconciled:
    """Pushes these job types as they are in the database now; one without a row is cleared. Raises StoreUnavailable."""
    rows = {row.name: row.overrides for row in JobType.objects.filter(name__in=names) if row.is_overridden}
    done = Reconciled()
    for name in names:
        _push_type(get_engine(), done, name, rows.get(name))
    return done


def push_pools(names: Collection[str]) -> Reconciled:
    """Pushes what is set for these pools in the database now. Raises StoreUnavailable."""
    rows = {row.name: row.settings for row in Pool.objects.filter(name__in=names)}
    done = Reconciled()
    for name in names:
        _push_pool(get_engine(), done, name, rows.get(name, NOTHING_SET))
    return done


def change_pool(name: str, **values: Any) -> str | None:
    """Sets fields of a pool, for good: in its row (made if need be) and in the engine.

    Raises OptionInvalid, and StoreUnavailable after the row was saved: worker hosts then carry the change to the engine
    when it is back. Without a database to read the row from, the engine alone is told: the answer says why, and the
    change holds until a host can read the rows again. WrongState where they can be read and not changed: what they say
    is what holds, and nothing was changed.
    """
    try:
        row = Pool.objects.filter(name=name).first() or Pool(name=name)
    except (DatabaseError, ImproperlyConfigured) as error:
        _refuse_wrong(row := Pool(name=name), values, checks_database=False)
        get_engine().pools.configure(name, **{setting: row.settings[setting] for setting in _touched(values)})
        return str(error)
    try:
        _refuse_wrong(row, values)
        row.save()
    except DatabaseError as error:
        raise WrongState(
            f"The database does not take what is set for pool {name}: {error}",
            fix=f"To hold the pool without it: `manage.py pools pause {name}`.",
        ) from error
    push_pools([name])
    return None


def _touched(fields: Iterable[str]) -> set[str]:
    """Which settings of the engine the fields of a row belong to."""
    return {field if field in SETTINGS else "autoscale" for field in fields}


def _refuse_wrong(row: Pool, values: Mapping[str, Any], *, checks_database: bool = True) -> None:
    """Puts the values into the row. OptionInvalid where it cannot hold them."""
    for name, value in values.items():
        setattr(row, name, value)
    try:
        row.clean_fields()
        row.clean()
        if checks_database:
            row.validate_constraints()
    except ValidationError as error:
        raise OptionInvalid(f"pool {row.name!r:.80}: {' '.join(error.messages)}") from None


def connect(app: AppConfig) -> None:
    """Takes the registry into the rows after each ``migrate``. Redis is not asked: worker hosts reconcile anyway."""
    post_migrate.connect(_after_migrate, sender=app, dispatch_uid="jobs.reconciler")


def _after_migrate(*, using: str, **_: Any) -> None:
    if not router.allow_migrate_model(using, JobType):
        return
    try:
        register(using)
    except DatabaseError as error:
        # Migrated only part of the way, or back to nothing: the tables are not what this code expects.
        log.info("Job types were not taken into the database: %s", error)


def _push_type(engine: Engine, done: Reconciled, name: str, overrides: dict[str, Any] | None) -> None:
    if overrides is None:
        with _counted(done, "cleared", f"job type {name}"):
            engine.types.clear(name)
    else:
        with _counted(done, "pushed", f"job type {name}"):
            engine.types.set(name, overrides)


def _push_pool(engine: Engine, done: Reconciled, name: str, settings: dict[str, Any]) -> None:
    with _counted(done, "cleared" if settings == NOTHING_SET else "pushed", f"pool {name}"):
        engine.pools.configure(name, **settings)


@contextmanager
def _counted(done: Reconciled, what: str, subject: str) -> Iterator[None]:
    try:
        yield
    except (StoreUnavailable, OutcomeUnknown):
        raise
    except SchedulerError as error:
        done.refused[subject] = str(error)
        log.error("The engine refused the database's values for %s: %s", subject, error)
    else:
        setattr(done, what, getattr(done, what) + 1)


def _declaration(job_type: RegisteredType[..., Any]) -> dict[str, Any]:
    function: Callable[..., Any] = job_type.function
    return {
        "function": f"{function.__module__}.{function.__qualname__}"[:255],
        "description": inspect.getdoc(function) or "",
        "declared": {option: getattr(job_type, option) for option in OVERRIDABLE},
    }


def _differs(row: JobType, declaration: dict[str, Any]) -> bool:
    return any(getattr(row, name) != value for name, value in declaration.items())


def _set_by_people(settings: PoolSettings) -> dict[str, Any]:
    return {setting: msgspec.to_builtins(getattr(settings, setting)) for setting in SETTINGS}


def _as_dict(overrides: Any) -> dict[str, Any]:
    return {name: getattr(overrides, name) for name in (*OVERRIDABLE, "enabled")}
