"""Pools: looking at them, sizing them, holding them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from jobs.api.asynchronous import twin
from jobs.core import options
from jobs.engine import Pool, get_engine
from jobs.exceptions import OptionInvalid


def list() -> Sequence[Pool]:
    """All pools, by name."""
    return get_engine().pools.all()


def get(name: str) -> Pool:
    """PoolNotFound."""
    return get_engine().pools.get(name)


def scale(name: str, slots: int) -> Pool:
    """Sets the slots per worker process, for good; running workers follow. Creates the pool."""
    # The database row owns the number; the models can only be imported once Django's apps are ready.
    from jobs.services.reconciler import change_pool

    change_pool(options.check_pool("pool", name), slots=options.check_whole("slots", slots, 0, 10_000))
    return get(name)


def pause(name: str, *, by: str = "python", reason: str = "", until: datetime | None = None) -> Pool:
    """Nothing new of the pool starts from now on; what runs goes on. Until resumed, or ``until`` (aware)."""
    if until is not None and until.utcoffset() is None:
        raise OptionInvalid("until: has no time zone, so it names no moment", fix="Write until=timezone.now() + ….")
    get_engine().pools.pause(
        name,
        by=options.check_text("by", by),
        reason=options.check_text("reason", reason, may_be_empty=True),
        until=until,
    )
    return get(name)


def resume(name: str) -> Pool:
    """PoolNotFound."""
    get_engine().pools.resume(name)
    return get(name)


alist = twin(list)
aget = twin(get)
ascale = twin(scale, uses_database=True)
apause = twin(pause)
aresume = twin(resume)
