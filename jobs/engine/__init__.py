"""The verbs on jobs, pools, workers: one method is one script or one read. The engine holds a store and a clock.

``get_engine()`` is the one of this process, made from the settings.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from django.core.signals import setting_changed

from jobs.conf import Settings, get_settings
from jobs.core.clock import Clock, ServerClock
from jobs.core.pause import EVERYTHING, Pause, PauseState, Scope
from jobs.engine.backlog import Backlog, Noted
from jobs.engine.batches import BATCH
from jobs.engine.bulk import Bulk, BulkNotFound, BulkOperation, BulkRequest
from jobs.engine.caps import Caps, Pending
from jobs.engine.deaths import DeathNotices
from jobs.engine.duties import Duties
from jobs.engine.explain import Explain, Reason
from jobs.engine.following import Changes, Follower
from jobs.engine.jobs import Jobs
from jobs.engine.leases import Completion, Leases, PromoteReply, RecoverReply, RenewReply
from jobs.engine.limits import Hold, Holds, Leave, LimitRecords, Limits, LimitUpkeep, limits_of
from jobs.engine.listing import SCAN_LIMIT, JobFilter, Page
from jobs.engine.logs import LogPage, Logs, NewLines
from jobs.engine.moving import MOVED_FROM, Moving
from jobs.engine.mutes import Mute, MuteKind, Mutes
from jobs.engine.news import News
from jobs.engine.outbox import Outbox
from jobs.engine.partitions import Partition, Partitions
from jobs.engine.pauses import Pauses
from jobs.engine.pools import Autoscale, Pool, PoolNotFound, Pools, PoolSettings
from jobs.engine.redaction import Visible
from jobs.engine.run_control import RunControl
from jobs.engine.run_pauses import RunPauses
from jobs.engine.scaling import Scaling, Scalings
from jobs.engine.schedules import Schedules
from jobs.engine.series import Point, Series
from jobs.engine.stats import Snapshot, Stats
from jobs.engine.taking import Failure, LeaseReply
from jobs.engine.types import NO_OVERRIDES, TypeOverrides, Types
from jobs.engine.upkeep import Upkeep
from jobs.engine.workers import EndedHost, Release, Worker, WorkerInfo, WorkerNotFound, Workers
from jobs.engine.workflows import Workflows
from jobs.store.codec.ids import new_token
from jobs.store.connection import Store
from jobs.store.topology import Topology

__all__ = [
    "BATCH",
    "EVERYTHING",
    "MOVED_FROM",
    "NO_OVERRIDES",
    "SCAN_LIMIT",
    "Autoscale",
    "BulkNotFound",
    "BulkOperation",
    "BulkRequest",
    "Changes",
    "Completion",
    "EndedHost",
    "Engine",
    "Failure",
    "Follower",
    "Hold",
    "JobFilter",
    "LeaseReply",
    "Leave",
    "LogPage",
    "Mute",
    "MuteKind",
    "NewLines",
    "News",
    "Noted",
    "Page",
    "Partition",
    "Pause",
    "PauseState",
    "Point",
    "Pool",
    "PoolNotFound",
    "PoolSettings",
    "PromoteReply",
    "Reason",
    "RecoverReply",
    "Release",
    "RenewReply",
    "Scaling",
    "Scope",
    "Snapshot",
    "TypeOverrides",
    "Worker",
    "WorkerInfo",
    "WorkerNotFound",
    "get_engine",
    "limits_of",
    "new_token",
]


class Engine:
    """All verbs over one store, by noun."""

    def __init__(self, store: Store, settings: Settings, clock: Clock | None = None) -> None:
        clock = clock or ServerClock()
        self.store = store
        self.settings = settings
        self.topology = Topology(store)
        self.news = News(store)
        self.pending = Pending(store)
        self.visible = Visible(settings)
        self.jobs = Jobs(store, settings, clock, self.topology, self.news, self.pending, self.visible)
        self.moving = Moving(store, clock, self.topology, self.jobs)
        self.leases = Leases(store, settings, clock, self.news)
        limits = LimitRecords(store, clock)
        self.limits = Limits(limits, self.topology)
        self.limit_upkeep = LimitUpkeep(limits)
        self.holds = Holds(limits, self.topology)
        self.caps = Caps(store, self.topology)
        self.logs = Logs(store, settings)
        self.bulk = Bulk(store, clock)
        self.mutes = Mutes(store, clock)
        self.deaths = DeathNotices(store, clock)
        self.duties = Duties(store, clock)
        self.pauses = Pauses(store, clock, self.topology, self.leases)
        self.types = Types(store, self.pauses)
        self.workers = Workers(store, clock, self.news)
        self.series = Series(store, clock)
        self.pools = Pools(
            store, settings, clock, self.topology, self.workers, self.pauses, self.series, self.caps, self.pending
        )
        self.schedules = Schedules(store, settings, clock, self.jobs.creation.pending_limit)
        self.workflows = Workflows(store, settings, clock, self.news)
        self.run_control = RunControl(store, settings, clock)
        self.run_pauses = RunPauses(store, clock, self.workflows, self.pauses, self.leases)
        self.outbox = Outbox(store)
        self.stats = Stats(store, self.topology, self.pools, self.workers, self.series)
        self.explain = Explain(
            store, self.jobs, self.pools, self.pauses, self.workers, self.holds, self.workflows, self.visible
        )
        self.partitions = Partitions(store, self.topology)
        self.scalings = Scalings(store, clock)
        self.backlog = Backlog(store, clock, self.topology)
        self.upkeep = Upkeep(store, self.topology, self.jobs, self.leases, self.workers, self.series)

    def close(self) -> None:
        self.store.close()


_lock = threading.Lock()
_current: tuple[int, Engine] | None = None


def get_engine() -> Engine:
    """The engine of this process (a forked child gets its own)."""
    global _current
    if _current is None or _current[0] != os.getpid():
        with _lock:
            if _current is None or _current[0] != os.getpid():
                settings = get_settings()
                _current = (os.getpid(), Engine(Store.from_settings(settings), settings))
    return _current[1]


def _renew_lock() -> None:
    """Another thread may have held it at the moment of the fork, and does not exist here to give it back."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def reset_engine() -> None:
    """Closes the process's engine; the next ``get_engine`` builds a new one."""
    global _current
    with _lock:
        if _current is not None and _current[0] == os.getpid():
            _current[1].close()
        _current = None


def _on_setting_changed(*, setting: str, **_: Any) -> None:
    if setting == "SCHEDULER":
        reset_engine()


setting_changed.connect(_on_setting_changed, dispatch_uid="jobs.engine")
