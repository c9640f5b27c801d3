"""Schedules on a real server, under a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from jobs import job
from jobs.api import forecast, schedule_making, schedule_status, schedules
from jobs.core.job import Job, Route, moment
from jobs.engine import Completion, Engine, JobFilter, new_token
from jobs.engine.schedules import Record
from jobs.models import Schedule
from jobs.registry import registry
from jobs.services import carrying
from jobs.services.definitions import Definitions
from jobs.services.ticker import Ticker
from tests.support.clock import ManualClock


class World:
    """The rows, one host that carries and fires them, and what came of it."""

    def __init__(self, engine: Engine, clock: ManualClock) -> None:
        self.engine = engine
        self.clock = clock
        self.begin_anew()

    def begin_anew(self) -> None:
        """No row, an empty store, one host; the time is now."""
        Schedule.objects.all().delete()
        self.wipe()
        self.engine.topology.forget()
        self.start_ms = self.clock.now_ms()
        self.definitions, self.ticker = self.host()

    def host(self, engine: Engine | None = None) -> tuple[Definitions, Ticker]:
        """The services of one more worker host. Its own clock runs as the server's does."""
        engine = engine or self.engine
        carrying = Definitions(engine)
        carrying.tick()
        return carrying, Ticker(engine, carrying, elapsed=lambda: self.clock.now_ms() / 1000)

    def schedule(self, name: str = "s", **fields: Any) -> Schedule:
        """Stores a schedule, of one firing a minute if not said otherwise."""
        given: dict[str, Any] = {"name": name, "job_type": "schedules.work", "timezone": "UTC", **fields}
        if "kind" not in given and "cron" not in given:
            given |= {"kind": "interval", "interval_seconds": 60.0}
        row = Schedule(**{"created_at": self.now, "changed_at": self.now, **given})
        row.save()
        self.carry()
        return row

    def carry(self) -> None:
        """What a host's service does with every second look, when it also asks whether it is still the keeper."""
        self.definitions._held_at = float("-inf")
        self.definitions.tick()

    def remember(self) -> None:
        """How far its schedules are, which a host writes into the rows every few seconds."""
        self.definitions._noted_at = float("-inf")
        self.carry()

    def tick(self) -> dict[str, int]:
        """What a host's ticker does when something is due; it waits for the other service where it must."""
        done = self.ticker.tick()
        if self.definitions.is_checked:
            return done
        self.carry()
        return self.ticker.tick()

    def run(self, seconds: float) -> None:
        """Time passes; a host looks whenever something is due."""
        end = self.clock.now_ms() + round(seconds * 1000)
        for _ in range(10_000):
            at = self.next_look()
            if at is None or at > end:
                break
            self.clock.advance(max(0, at - self.clock.now_ms()) / 1000)
            self.tick()
        self.clock.advance((end - self.clock.now_ms()) / 1000)
        self.tick()

    def next_look(self) -> int | None:
        """When the first schedule is to be looked at, server ms."""
        client: Any = self.engine.store.client
        head = client.zrange(f"{self.engine.store.namespace}:{{schedules}}:due", 0, 0, withscores=True)
        return int(head[0][1]) if head else None

    def wipe(self) -> None:
        """The store is emptied."""
        client: Any = self.engine.store.client
        if keys := [*client.scan_iter(match=f"{self.engine.store.namespace}:*", count=1_000)]:
            client.unlink(*keys)

    def dump(self) -> dict[bytes, bytes]:
        """A copy of the store, for ``restore``."""
        client: Any = self.engine.store.client
        return {key: client.dump(key) for key in client.scan_iter(match=f"{self.engine.store.namespace}:*")}

    def restore(self, dumped: dict[bytes, bytes]) -> None:
        """The store is put back."""
        self.wipe()
        client: Any = self.engine.store.client
        for key, value in dumped.items():
            client.restore(key, 0, value)

    @property
    def now(self) -> datetime:
        return moment(self.clock.now_ms())

    def minutes(self, at: datetime | None) -> float:
        """Since the start."""
        assert at is not None
        return (at.timestamp() * 1000 - self.start_ms) / 60_000

    def jobs(self, name: str = "s") -> list[Job]:
        """The jobs of a schedule by their fire time."""
        found, cursor = [], None
        while True:
            page = self.engine.jobs.page(JobFilter(), cursor=cursor, limit=1000)
            found += [job for job in page.items if job.schedule == name]
            cursor = page.next_cursor
            if cursor is None:
                return sorted(found, key=lambda job: job.fire_time or self.now)

    def fired(self, name: str = "s") -> list[float]:
        """The fire times of its jobs, in minutes since the start."""
        return [self.minutes(job.fire_time) for job in self.jobs(name)]

    def records(self, name: str = "s") -> list[Record]:
        """Its history, oldest first."""
        [live] = self.engine.schedules.read([name], records=1000)
        return live.records[::-1]

    def skipped(self, name: str = "s") -> list[tuple[float, str]]:
        """What was skipped and why, in minutes since the start."""
        return [
            (self.minutes(moment(record.due)), record.reason)
            for record in self.records(name)
            if record.outcome == "skipped"
        ]

    def end(self, job_id: str, *, started: bool = True) -> None:
        """A worker takes the next job, which must be this, and ends it."""
        leased = self.lease(job_id)
        completion = Completion(leased.id, leased.token, leased.type, leased.leased_at, None, None)
        assert self.engine.leases.complete(leased.route, [completion]) == ["ok"]

    def lease(self, job_id: str) -> Any:
        """A worker takes the next job, which must be this."""
        route = Route("default", 1, 0)
        [leased] = self.engine.leases.lease(route, worker="w", token=new_token(), limit=1, lease_ms=600_000).jobs
        assert leased.id == job_id
        self.engine.leases.start(route, [(leased.id, leased.token, leased.leased_at)])
        return leased


@pytest.fixture
def world(engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[World]:
    """One job type to be scheduled, no rows, one host."""
    monkeypatch.setattr(carrying, "get_engine", lambda: engine)
    with registry.restored():

        @job("schedules.work")
        def work(number: int = 0) -> int:
            return number

        yield World(engine, clock)


@pytest.fixture
def commits(django_capture_on_commit_callbacks: Any) -> Callable[[], Any]:
    """``with commits(): …``: what waits for the commit happens at the end of the block."""
    return lambda: django_capture_on_commit_callbacks(execute=True)


@pytest.fixture
def same_engine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API asks the engine whose clock the test moves."""
    for place in (schedules, schedule_making, schedule_status, forecast):
        monkeypatch.setattr(place, "get_engine", lambda: world.engine)


def create(world: World, **fields: Any) -> Schedule:
    """Makes a schedule by the API, of one firing a minute if not said otherwise."""
    given = {"name": "s", "job_type": "schedules.work", "kind": "interval", "interval_seconds": 60, **fields}
    row = schedules.create(by="ana", **given)
    Schedule.objects.filter(pk=row.pk).update(created_at=world.now, changed_at=world.now)
    world.carry()
    return row
