"""The whole system: how it stands, and holding all of it."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.api import pauses
from jobs.api.asynchronous import twin
from jobs.api.pauses import Until
from jobs.core.job import iso
from jobs.core.pause import EVERYTHING, Pause, Scope
from jobs.engine import get_engine


def status() -> dict[str, Any]:
    """The JSON of ``scheduler status``: who holds the system, hosts, workers, server time, jobs by state, pools."""
    snapshot, everything = get_engine().stats.snapshot(), paused()
    return {
        "paused": msgspec.to_builtins(everything) if everything else None,
        "hosts": snapshot.hosts,
        "workers": snapshot.workers,
        "server_time": iso(snapshot.server_time),
        "states": snapshot.states,
        "pools": [pool.as_dict() for pool in snapshot.pools],
    }


def paused() -> Pause | None:
    """Who paused everything, when, why and until when; None while it is open."""
    return get_engine().pauses.state().everything


def unlifted() -> list[tuple[Scope, Pause]]:
    """What is past the end of its pause, and not lifted yet: everything, a pool or a job type, with that pause.

    Worker hosts lift a pause at its end. Leases do not wait for that; jobs of a type that were set aside do.
    """
    return get_engine().pauses.unlifted()


def pause(*, by: str | None = None, reason: str = "", until: Until = None, wait: float | None = None) -> dict[str, Any]:
    """Nothing new starts anywhere from when this returns; what runs goes on. As ``pools.pause``; answers ``status``."""
    pauses.pause(EVERYTHING, by=by, reason=reason, until=until, wait=wait)
    return status()


def resume() -> dict[str, Any]:
    """Ends the pause of everything; pools and types that were paused by themselves stay so. Answers ``status``."""
    pauses.resume(EVERYTHING)
    return status()


apaused = twin(paused)
aunlifted = twin(unlifted)
apause = twin(pause, uses_database=True)
aresume = twin(resume, uses_database=True)
astatus = twin(status)
