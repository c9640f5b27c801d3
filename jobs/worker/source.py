"""Where the jobs of a child come from: a ``Fetcher``, or the ``Errand`` of a child that was made for one job."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from jobs.core.job import Route
from jobs.worker.slots import PoolSlots


class Source(Protocol):
    """Leads jobs to the slots of a child, which asks it these things and tells it when to stop."""

    @property
    def pools(self) -> list[PoolSlots]: ...

    @property
    def in_hand(self) -> int: ...

    @property
    def is_idle(self) -> bool: ...

    @property
    def trouble(self) -> str | None: ...

    def start(self) -> None: ...

    def look(self) -> None: ...

    def settled(self, routes: Iterable[Route]) -> None: ...

    def reconsider(self) -> None: ...

    def hold(self, is_held: bool) -> None: ...

    @property
    def is_quiet(self) -> bool: ...

    def quiesce(self) -> None: ...

    def hand_back(self) -> None: ...
