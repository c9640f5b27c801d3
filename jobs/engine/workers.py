"""The registry of worker hosts and workers: who is there, what it does, and what it was told to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from math import inf
from typing import Any, Literal, NamedTuple

import msgspec

from jobs.core.clock import Clock
from jobs.core.job import iso, moment
from jobs.core.pause import Pause
from jobs.engine.news import News
from jobs.exceptions import OutcomeUnknown, SchedulerError, StoreUnavailable, WrongState
from jobs.store.connection import Store
from jobs.store.keys import HostKeys
from jobs.store.pauses import read_pause

Command = Literal["drain", "stop"]

LEAVING = ("draining", "stopping")
"""How the state of a worker begins that takes nothing new any more."""

NEWS = "workers"
"""The topic under which a host hears at once, by its id, that it was paused or resumed, or one of its workers told to
end."""


class Release(NamedTuple):
    """A version of the code that workers run, and when one of them first told of it."""

    name: str
    at: datetime


class WorkerNotFound(SchedulerError):
    """There is no worker with this id."""

    code = "worker_not_found"


class WorkerInfo(msgspec.Struct, kw_only=True):
    """What a worker says of itself. ``host``: the id of its host; a host names itself. ``rss``: bytes. ``cpu_seconds``:
    used since it started; ``cpu``: processors in use since its last beat, 1.0 = one of them all the time."""

    id: str
    host: str
    hostname: str
    pid: int
    pools: dict[str, int]  # pool → slots
    started_at_ms: int
    state: str  # "consuming", "not consuming: <why>", "draining", "stopping"
    running: int = 0
    rss: int = 0
    cpu_seconds: float = 0.0
    cpu: float = 0.0
    version: str = ""
    current: list[dict[str, Any]] = []  # the jobs it runs: id, type, started_at

    @property
    def is_leaving(self) -> bool:
        return self.state.startswith(LEAVING)


class Worker(WorkerInfo, kw_only=True):
    """A worker as a reader sees it. ``paused``: the pause of its host, while it holds."""

    alive: bool
    last_seen_ms: int
    now_ms: int = 0  # of the server, at the reading
    paused: Pause | None = None

    @property
    def is_host(self) -> bool:
        return self.id == self.host

    @property
    def heartbeat_age_seconds(self) -> float:
        """How long ago it was heard of."""
        return max(0, self.now_ms - self.last_seen_ms) / 1000

    def running_jobs(self) -> list[dict[str, Any]]:
        """What it runs: id, type where it is known, start, and for how long it has run (seconds)."""
        return [
            {
                **job,
                "age_seconds": max(0, self.now_ms - begun) / 1000 if (begun := _ms(job.get("started_at"))) else None,
            }
            for job in self.current
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "host": self.host,
            "hostname": self.hostname,
            "pid": self.pid,
            "state": self.state if self.alive else "gone",
            "alive": self.alive,
            "pools": self.pools,
            "slots": sum(self.pools.values()),
            "running": self.running,
            "rss": self.rss,
            "cpu": self.cpu,
            "cpu_seconds": self.cpu_seconds,
            "version": self.version,
            "draining": self.is_leaving,
            "paused": msgspec.to_builtins(self.paused) if self.paused else None,
            "started_at": iso(moment(self.started_at_ms)),
            "last_seen_at": iso(moment(self.last_seen_ms)),
            "heartbeat_age_seconds": self.heartbeat_age_seconds,
            "current": self.running_jobs(),
        }


class EndedHost(msgspec.Struct, kw_only=True, frozen=True):
    """A host that has ended in good order, and ``why``: by which signal, by what it was told, or by its own options.
    ``handed_back``: attempts that still ran."""

    id: str
    hostname: str
    pid: int
    version: str
    started_at_ms: int
    ended_at_ms: int
    why: str
    handed_back: int = 0

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "hostname": self.hostname,
            "pid": self.pid,
            "version": self.version,
            "started_at": iso(moment(self.started_at_ms)),
            "ended_at": iso(moment(self.ended_at_ms)),
            "why": self.why,
            "handed_back": self.handed_back,
        }


class Heard(NamedTuple):
    """What a host hears when it beats: whether it ``was_known``, the ``commands`` left for each worker, and its
    ``pause`` while it holds, for so many ``seconds`` yet (``inf``: until it is resumed)."""

    was_known: bool
    commands: dict[str, list[str]]
    pause: Pause | None
    seconds: float


NOT_HELD = (None, inf)

ENDED_SECONDS = 3600
"""For as long hosts that have ended are told of, as those are that went silent."""

ENDED_KEPT = 100

_decode_info = msgspec.msgpack.Decoder(tuple[int, WorkerInfo]).decode
_decode_ended = msgspec.msgpack.Decoder(EndedHost).decode


class Workers:
    def __init__(self, store: Store, clock: Clock, news: News) -> None:
        self._store = store
        self._clock = clock
        self._news = news
        self._keys = HostKeys(store.namespace)

    def beat(self, infos: Sequence[WorkerInfo], *, ttl_ms: int) -> Heard:
        """Says that these, of which there is at least one and all are of one host, are alive, for ``ttl_ms``.

        A command is given again until the worker's state says that it drains or stops.
        """
        now = self._clock.now_ms()
        items: list[Any] = []
        for info in infos:
            items += (info.id, msgspec.msgpack.encode((ttl_ms, info)), "1" if info.is_leaving else "")
        host, release = infos[0].host, infos[0].version
        given = "" if now is None else now
        stored, was_known, *commands = self._store.run(
            "worker_beat", self._keys, items, given_now=given, ttl=ttl_ms, release=release, host=host
        )
        told = zip(infos, commands, strict=True)
        return Heard(
            bool(was_known),
            {info.id: [command.decode()] if command else [] for info, command in told},
            *(self._held(stored) if stored else NOT_HELD),
        )

    def leave(self, ids: Iterable[str], ended: EndedHost | None = None) -> None:
        """Removes workers that ended in good order; their host, if that is among them, is told of as ``ended``."""
        gone = list(ids)
        if not gone:
            return

        def send(client: Any) -> None:
            pipeline = client.pipeline(transaction=False)
            if ended is not None:
                pipeline.zadd(self._keys.ended, {msgspec.msgpack.encode(ended): ended.ended_at_ms})
                pipeline.zremrangebyrank(self._keys.ended, 0, -1 - ENDED_KEPT)
                pipeline.expire(self._keys.ended, ENDED_SECONDS)
            pipeline.hdel(self._keys.workers, *gone)
            pipeline.zrem(self._keys.alive, *gone)
            pipeline.hdel(self._keys.commands, *gone)
            pipeline.hdel(self._keys.pauses, *gone)
            pipeline.execute()

        self._store.call(send)

    def ended(self) -> list[EndedHost]:
        """The hosts that ended in good order within the last hour, the latest first; at most ``ENDED_KEPT``."""
        since = self._now_ms() - ENDED_SECONDS * 1000
        found: Any = self._store.read(lambda client: client.zrange(self._keys.ended, since, "+inf", byscore=True))
        hosts = []
        for raw in reversed(found):
            with suppress(msgspec.MsgspecError):
                hosts.append(_decode_ended(raw))
        return hosts

    def all(self) -> list[Worker]:
        """All that beat within the last hour, hosts before their workers."""
        return list(self._store.once("workers", self._all))

    def _all(self) -> list[Worker]:
        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            pipeline.hgetall(self._keys.workers)
            pipeline.zrange(self._keys.alive, 0, -1, withscores=True)
            pipeline.hgetall(self._keys.pauses)
            return list(pipeline.execute())

        stored, alive, pauses = self._store.read(send)
        now = self._now_ms()
        until = dict(alive)
        workers = []
        for worker_id, raw in stored.items():
            try:
                ttl_ms, info = _decode_info(raw)
            except msgspec.MsgspecError:
                continue
            facts = {name: getattr(info, name) for name in WorkerInfo.__struct_fields__}
            alive_until = int(until.get(worker_id, 0))
            workers.append(
                Worker(
                    **facts,
                    alive=alive_until > now,
                    last_seen_ms=max(0, alive_until - ttl_ms),
                    now_ms=now,
                    paused=_holding(pauses.get(info.host.encode()), now),
                )
            )
        return sorted(workers, key=lambda worker: (worker.host, not worker.is_host, worker.id))

    def releases(self, minutes: float) -> list[Release]:
        """The versions that workers first told of in the last ``minutes``, oldest first.

        One that comes back, as in a rollback, is none: it was seen before.
        """
        since = self._now_ms() - int(minutes * 60_000)
        found: Any = self._store.read(
            lambda client: client.zrange(self._keys.releases, since, "+inf", byscore=True, withscores=True)
        )
        return [_release(name, at) for name, at in found]

    def newest_release(self, until: datetime | None = None) -> Release | None:
        """The one that was first told of last, not after ``until``; None where no worker has told of any."""
        latest = "+inf" if until is None else int(until.timestamp() * 1000)

        def read(client: Any) -> Any:
            key, options = self._keys.releases, {"byscore": True, "offset": 0, "num": 1, "withscores": True}
            return client.zrange(key, latest, "-inf", desc=True, **options)

        found = self._store.once(("newest release", latest), lambda: self._store.read(read))
        return _release(*found[0]) if found else None

    def get(self, worker_id: str) -> Worker:
        """WorkerNotFound."""
        for worker in self.all():
            if worker.id == worker_id:
                return worker
        raise WorkerNotFound(f"There is no worker {worker_id!r}.", fix="`manage.py workers list` names them.")

    def command(self, worker_id: str, command: Command) -> Worker:
        """Leaves a command that the worker obeys at once: its host hears of it, or else finds it when it beats.
        WorkerNotFound."""
        worker = self.get(worker_id)
        self._store.call(lambda client: client.hset(self._keys.commands, worker_id, command))
        self._tell(worker.host)
        return worker

    # pauses of hosts

    def pause(self, host_id: str, *, by: str, reason: str = "", until: datetime | None = None) -> Pause | None:
        """The host takes no new jobs, from a moment after this on. Answers the pause before it.

        It ends with the host. WorkerNotFound where that is not alive; WrongState for a worker that is no host.
        """
        if not (worker := self.get(host_id)).is_host:
            raise WrongState(
                f"{host_id} is one worker of a host, and only a whole host can be paused.",
                fix=f"Pause its host: {worker.host}",
            )
        return self._set_pause(
            host_id, Pause(by=by, at=iso(moment(self._now_ms())) or "", reason=reason, until=iso(until))
        )

    def resume(self, host_id: str) -> Pause | None:
        """Ends the pause of the host; answers it. No error where there is none. WorkerNotFound."""
        return self._set_pause(host_id, None)

    def _held(self, stored: bytes) -> tuple[Pause | None, float]:
        """The pause while it holds, and the seconds that it does so yet."""
        now = self._now_ms()
        pause = _holding(stored, now)
        return pause, (pause.until_ms - now) / 1000 if pause and pause.until else inf

    def _set_pause(self, host_id: str, pause: Pause | None) -> Pause | None:
        packed = msgspec.json.encode(pause) if pause else b""
        found, before = self._store.run("worker_pause", self._keys, id=host_id, pause=packed, now=self._now_ms())
        if not found:
            raise WorkerNotFound(
                f"There is no worker host {host_id!r} that is alive.", fix="`manage.py workers list` names them."
            )
        if before != packed:
            self._tell(host_id)
        return _holding(before, self._now_ms())

    def _tell(self, host_id: str) -> None:
        """What is told has been done: a host that does not hear of it finds it at its next beat."""
        with suppress(StoreUnavailable, OutcomeUnknown):
            self._news.tell(NEWS, host_id)

    def _now_ms(self) -> int:
        return self._clock.now_ms() or self._store.time_ms()


def _release(name: bytes, at: float) -> Release:
    return Release(name.decode(errors="replace"), moment(int(at)))


def _holding(stored: bytes | None, now_ms: int) -> Pause | None:
    """The pause that was stored, if there is one and its time is not over."""
    pause = read_pause(stored) if stored else None
    return pause if pause and now_ms < pause.until_ms else None


def _ms(at: Any) -> int | None:
    """Unix milliseconds of an ISO 8601 moment; None where it is none."""
    try:
        return int(datetime.fromisoformat(at).timestamp() * 1000)
    except (TypeError, ValueError):
        return None
