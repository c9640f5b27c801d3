"""Pools: looking at them, sizing them, holding them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from jobs.api import audit, pauses
from jobs.api.asynchronous import twin
from jobs.api.pauses import Until
from jobs.core import options
from jobs.core.pause import Scope
from jobs.engine import Pool, PoolSettings, Scaling, get_engine
from jobs.exceptions import OptionInvalid, WrongState

UNSET = PoolSettings()
MOST_SLOTS = 1000

Limit = int | msgspec.UnsetType | None
MOST = 2_147_483_647
"""The largest limit: what a database keeps in such a field."""


def list() -> Sequence[Pool]:
    """All pools, by name."""
    return get_engine().pools.all()


def get(name: str) -> Pool:
    """PoolNotFound."""
    return get_engine().pools.get(name)


def settings(name: str) -> PoolSettings:
    """What was set for a pool; None in each field that was not. PoolNotFound."""
    get_engine().pools.require(name)
    return get_engine().pools.settings().get(name, UNSET)


def scale(name: str, slots: int | None) -> Pool:
    """Sets the slots per worker process, for good; running workers follow within a second. Creates the pool.

    None: as the settings declare it. WrongState where autoscaling decides over them.
    """
    if slots is not None:
        options.check_whole("slots", slots, 0, MOST_SLOTS)
    if get_engine().pools.settings().get(name, UNSET).is_autoscaled:
        raise WrongState(
            f"Pool {name} is sized by autoscaling: a number set by hand would not last",
            fix=f"Change its bounds, or turn it off: `manage.py pools autoscale {name} --off`.",
        )
    return _change("pool.scale", name, slots=slots)


def limit(name: str, *, max_running: Limit = msgspec.UNSET, max_pending: Limit = msgspec.UNSET) -> Pool:
    """Limits the pool over all hosts, for good; what is not given stays as it is, None means no limit.

    ``max_running``: jobs at once; from when this returns no more are started, what runs goes on. ``max_pending``:
    waiting jobs, beyond which producers get PoolFull (within a second in every process). Creates the pool.
    """
    given = {"max_running": max_running, "max_pending": max_pending}
    changes = {setting: value for setting, value in given.items() if value is not msgspec.UNSET}
    if not changes:
        raise OptionInvalid(
            "Neither max_running nor max_pending is given", fix="Write max_running=5, or None for no limit."
        )
    for setting, value in changes.items():
        if value is not None:
            options.check_whole(setting, value, 0, MOST)
    return _change("pool.limit", name, **changes)


def autoscale(
    name: str,
    *,
    mode: str | None = None,
    min_slots: int | None = None,
    max_slots: int | None = None,
    target_wait_seconds: float | None = None,
    tolerance_seconds: float | None = None,
    cooldown_seconds: float | None = None,
) -> Pool:
    """Lets a machine size the pool by how long its jobs wait; see the guide on operating.

    ``mode``: ``on``, ``dry_run`` (decisions are recorded and not carried out) or ``off``. What is not named stays as it
    is. Creates the pool. OptionInvalid.
    """
    if mode not in (None, "on", "dry_run", "off"):
        raise OptionInvalid(f"mode: {mode!r} is not one of on, dry_run, off")
    numbers = {
        "min_slots": min_slots,
        "max_slots": max_slots,
        "target_wait_seconds": target_wait_seconds,
        "tolerance_seconds": tolerance_seconds,
        "cooldown_seconds": cooldown_seconds,
    }
    values = {field: value for field, value in numbers.items() if value is not None}
    return _change("pool.autoscale", name, **values, **({} if mode is None else {"autoscale": mode}))


def scalings(name: str) -> Sequence[Scaling]:
    """What autoscaling decided over a pool lately, and why, oldest first. PoolNotFound."""
    get_engine().pools.require(name)
    return get_engine().scalings.history(name)


def closed_to(user: Any) -> frozenset[str]:
    """The pools in which this user (of Django) may not act: they are kept for groups, and none of these is theirs.

    Raises DatabaseError where that cannot be read.
    """
    from jobs.models import Pool as Row  # the models can only be imported once Django's apps are ready

    if user.is_superuser:
        return frozenset()
    kept = Row.objects.filter(operators__isnull=False).exclude(operators__in=user.groups.all())
    return frozenset(kept.values_list("name", flat=True))


def pause(
    name: str,
    *,
    by: str | None = None,
    reason: str = "",
    until: Until = None,
    wait: float | None = None,
) -> Pool:
    """Nothing new of the pool starts from when this returns; what runs goes on. Until resumed, or ``until`` (aware).

    ``by``: whoever acts now, if not given. ``wait``: at most so many seconds for what workers had taken before.
    PoolNotFound, OptionInvalid.
    """
    get(name)
    pauses.pause(Scope("pool", name), by=by, reason=reason, until=until, wait=wait)
    return get(name)


def resume(name: str) -> Pool:
    """PoolNotFound."""
    get(name)
    pauses.resume(Scope("pool", name))
    return get(name)


def _change(action: str, name: str, **values: Any) -> Pool:
    """Changes fields of the pool's row, which owns them, and what the engine knows of them."""
    from jobs.services.reconciler import change_pool  # the models can only be imported once Django's apps are ready

    options.check_pool("pool", name)
    engine = get_engine()
    before = engine.pools.settings().get(name, UNSET)
    if trouble := change_pool(name, **values):
        audit.actor().unrecorded.append(f"it holds until the database can be read again ({trouble})")
    changed = engine.pools.settings().get(name, UNSET)
    audit.record(action, name, before=_difference(before, changed), after=_difference(changed, before))
    return get(name)


def _difference(one: PoolSettings, other: PoolSettings) -> dict[str, Any]:
    """The fields of one that differ in the other."""
    return {
        field: msgspec.to_builtins(getattr(one, field))
        for field in PoolSettings.__struct_fields__
        if getattr(one, field) != getattr(other, field)
    }


alist = twin(list)
aget = twin(get)
aclosed_to = twin(closed_to, uses_database=True)
asettings = twin(settings)
ascale = twin(scale, uses_database=True)
ascalings = twin(scalings)
aautoscale = twin(autoscale, uses_database=True)
alimit = twin(limit, uses_database=True)
apause = twin(pause, uses_database=True)
aresume = twin(resume, uses_database=True)
