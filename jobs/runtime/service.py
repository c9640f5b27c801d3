"""What every worker host does besides running jobs: small duties, each repeated for ever in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from jobs.runtime.loop import Loop


class Service(Protocol):
    """One duty. Any number of hosts do it at the same time: whatever it does must bear that."""

    @property
    def name(self) -> str: ...

    @property
    def every(self) -> float:
        """Seconds until ``tick`` wants to be called again; asked after each tick."""

    def tick(self) -> dict[str, int]:
        """Does what is due and answers how much of what it did. Raises StoreUnavailable where the store is away."""


@runtime_checkable
class Hearing(Protocol):
    """A service that does more in a tick that was asked for than in one whose time has come."""

    def hear(self) -> None:
        """Somebody told of a change, anywhere. Called before the tick, in its thread."""


def service_loop(service: Service, on_done: Callable[[dict[str, int]], None] = lambda done: None) -> Loop:
    """The thread that keeps a service going. ``on_done`` is told what each tick has done."""

    def tick() -> float:
        if loop.was_nudged and isinstance(service, Hearing):
            service.hear()
        on_done(service.tick())
        return service.every

    loop = Loop(service.name, tick)
    return loop
