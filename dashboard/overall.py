"""How all of it stands: the reading that every page shares, and the last one while the store cannot be asked."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dashboard.day import Day
from dashboard.verdicts import Verdict
from jobs.api import Noted
from jobs.api.workflows import NodeCounts
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreNewer, StoreRefused, StoreUnavailable

log = logging.getLogger(__name__)

UNREACHABLE = (StoreUnavailable, OutcomeUnknown, StoreRefused)
"""What the store cannot be read for."""

TROUBLE = "The store cannot be reached."
FIX = "Start the server, or correct SCHEDULER_REDIS_URL; “manage.py doctor” says what is wrong."
"""What pages say. Addresses and causes are in the log: not everybody who may look at jobs need know them."""


SPOILT = "Something that is stored cannot be read."
SPOILT_FIX = "Which key it is stands in the log of this server."
"""The server answers, and something in it has become what it must not be."""


def trouble_of(error: Exception) -> tuple[str, str]:
    """What pages say of one of UNREACHABLE, and what helps. That newer code is about is for everybody to know."""
    match error:
        case StoreNewer():
            return str(error), error.fix
        case StoreRefused():
            return SPOILT, SPOILT_FIX
    return TROUBLE, FIX


RETRY_AFTER_SECONDS = 1.0
"""While the store is away only one reader in this time asks it; the others are answered from memory at once."""


@dataclass(frozen=True)
class Overall:
    """All pools, states and worker counts at one moment. ``known`` is false before the first successful read."""

    pools: tuple[dict[str, Any], ...] = ()
    states: dict[str, int] | None = None
    hosts: int = 0
    workers: int = 0
    late: tuple[str, ...] = ()  # schedules that should have fired and did not, the most overdue first
    quiet_dead: int = 0  # dead jobs whose error or type somebody has muted, among the newest
    paused: dict[str, Any] | None = None  # the pause of everything: by, at, reason, until
    unlifted: tuple[dict[str, Any], ...] = ()  # pauses past their end: kind, name, and the pause
    held: tuple[dict[str, Any], ...] = ()  # hosts that are paused: id, hostname, and the pause of each
    overdue_since: datetime | None = None  # the first job that is due and that nobody puts in line: no host is alive
    day: Day | None = None
    notes: tuple[Noted, ...] = ()  # how many jobs were ready in each pool, over the last hour
    silent: tuple[str, ...] = ()  # hosts that ended a short while ago and said nothing of it
    outdated: tuple[str, ...] = ()  # hosts that run an older release than the newest, and have for a while
    newest: str = ""  # the release of the host that started last
    flaws: tuple[Verdict, ...] = ()  # what is wrong with the server, worst first
    clock_jumped_at: datetime | None = None  # when the server's clock last did
    nodes: NodeCounts | None = None  # of runs of workflows: those that wait, and those that were skipped lately
    at: datetime | None = None  # of the server's clock
    trouble: str = ""  # why it could not be read anew; empty = fresh
    fix: str = ""

    @property
    def known(self) -> bool:
        return self.states is not None

    @property
    def now(self) -> datetime:
        """The moment that ages on the page count from: the server's clock when fresh, ours when it cannot be asked."""
        return self.at if self.at and not self.trouble else datetime.now(UTC)

    @property
    def loud_dead(self) -> int:
        """Dead jobs that nobody has muted."""
        return max(0, (self.count("dead") or 0) - self.quiet_dead)

    def count(self, state: str) -> int | None:
        return self.states.get(state, 0) if self.states is not None else None


class LastKnown:
    """The newest reading of the whole, shared by all requests and sockets of this process.

    ``read`` asks the store, and raises one of UNREACHABLE where it is away.
    """

    def __init__(self, read: Callable[[], Overall]) -> None:
        self._read = read
        self._lock = threading.Lock()
        self._overall = Overall()
        self._failed_at = float("-inf")
        self._kind: type[SchedulerError] = StoreUnavailable  # what its being away is

    def read(self) -> Overall:
        """A fresh reading, or the last one with ``trouble`` saying why it is not fresh."""
        if self._away:
            return self._overall
        try:
            overall = self._read()
        except UNREACHABLE as error:
            overall = self._failed(error)
        with self._lock:
            self._overall = overall
            if overall.trouble:
                self._failed_at = time.monotonic()
        return overall

    @property
    def _away(self) -> bool:
        return bool(self._overall.trouble) and time.monotonic() - self._failed_at < RETRY_AFTER_SECONDS

    def refuse_while_away(self) -> None:
        """Raises one of UNREACHABLE when the store could not be read a moment ago."""
        if self._away:
            raise self._kind(self._overall.trouble, fix=self._overall.fix)

    def _failed(self, error: Exception) -> Overall:
        last = self._overall
        if not last.trouble:
            log.warning("dashboard.store_away %s", error)
        trouble, fix = trouble_of(error)
        self._kind = type(error) if isinstance(error, (StoreNewer, StoreRefused)) else StoreUnavailable
        return replace(last, trouble=trouble, fix=fix)

    def forget(self) -> None:
        """Back to knowing nothing (tests, settings changed)."""
        self._overall = Overall()
        self._failed_at = float("-inf")
