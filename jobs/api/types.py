"""Job types while they run: what was set for them in the admin, whose rows own it, and whether they are paused."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.api import pauses
from jobs.api.asynchronous import twin
from jobs.api.pauses import Until
from jobs.core import options
from jobs.core.pause import Pause, Scope
from jobs.engine import TypeOverrides, get_engine
from jobs.registry import registry


def get(name: str) -> TypeOverrides:
    """What is set for a type; None in each field that is as the code declares it."""
    return get_engine().types.get(name)


def disabled() -> frozenset[str]:
    """Types that are switched off in the admin: they may be enqueued and do not start."""
    return get_engine().types.disabled()


def paused() -> Mapping[str, Pause]:
    """Types that are paused now, and by whom."""
    return get_engine().pauses.state().types


def pause(
    name: str,
    *,
    by: str | None = None,
    reason: str = "",
    until: Until = None,
    wait: float | None = None,
) -> Pause | None:
    """Nothing new of this type starts, in any pool, from when this returns; its jobs are kept. As ``pools.pause``.

    Answers the pause that holds now. A type that this process has not registered may be paused too.
    """
    pauses.pause(_scope(name), by=by, reason=reason, until=until, wait=wait)
    return paused().get(name)


def resume(name: str) -> None:
    """Ends the pause of a type. One that is disabled in the admin stays so."""
    pauses.resume(_scope(name))


def names() -> frozenset[str]:
    """Every type that this process has registered, or that is paused or disabled."""
    state = get_engine().pauses.state()
    return frozenset({*registry.all(), *state.types, *state.disabled})


def _scope(name: str) -> Scope:
    return Scope("type", options.check_text("type", name))


aget = twin(get)
adisabled = twin(disabled)
apaused = twin(paused)
apause = twin(pause, uses_database=True)
aresume = twin(resume, uses_database=True)
anames = twin(names)
