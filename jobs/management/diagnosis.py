"""The checks of ``doctor``: each looks at one thing that makes jobs late, lost or doubled when it is wrong.

A check answers findings; a failed one names the setting and says what to do. No check trusts anything: the store, the
database and the channel layer may each be down or hang, and the others are still looked at. So they run side by side,
and one that has not answered in time is itself a finding.
"""

from __future__ import annotations

import asyncio
import threading
import time
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from django.conf import settings as django_settings
from django.core import checks as system_checks
from django.db import connections
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone
from django.utils.module_loading import import_string

from jobs import api
from jobs.api import Pool, Worker
from jobs.checks import TAG, server_problems
from jobs.conf import get_settings
from jobs.core.job import iso, moment
from jobs.exceptions import SchedulerError
from jobs.management.durations import spoken

ALLOWED_SECONDS = 9.0
"""What has not answered by then hangs. With the start of the process it stays below the 15 seconds of every command."""
STORE_SECONDS = 4.0
"""How long the store may take, so that there is time left for what is asked after it."""
CHANNEL_SECONDS = 3.0

SKEW_WARNING = timedelta(seconds=2)
SKEW_FAILURE = timedelta(seconds=30)
MEMORY_WARNING = 0.85


class Finding(NamedTuple):
    """What a check found. ``status``: ok, warning, failed or skipped. ``setting``: where it is put right."""

    check: str
    status: str
    detail: str
    setting: str = ""
    fix: str = ""

    def as_dict(self) -> dict[str, str]:
        return self._asdict()


class Flaw(NamedTuple):
    """A hole in the server's Lua engine, and the first release of each line that closes it."""

    names: str
    fixed_in: dict[str, dict[tuple[int, int], int]]  # product → release line → patch number


FLAWS = (
    Flaw(
        "CVE-2025-49844, CVE-2025-46817, CVE-2025-46818 and CVE-2025-46819",
        {
            "Redis": {(6, 2): 20, (7, 2): 11, (7, 4): 6, (8, 0): 4, (8, 2): 2},
            "Valkey": {(7, 2): 11, (8, 0): 6, (8, 1): 4},
        },
    ),
    Flaw("CVE-2026-23631", {"Valkey": {(8, 0): 8, (8, 1): 7, (9, 0): 4}}),
)
"""Anybody who may run scripts could run code of their own on the server. Lines older than these got no fix; newer ones
were released with it."""


class Server(NamedTuple):
    """What the store says of itself. ``asked_at`` is this machine's clock when the server said ``time``."""

    url: str
    info: dict[str, Any]
    saves: bool  # snapshots are configured
    time: datetime
    asked_at: datetime

    @property
    def product(self) -> str:
        return "Valkey" if self.info.get("valkey_version") else "Redis"

    @property
    def version(self) -> tuple[int, ...]:
        text = str(self.info.get("valkey_version") or self.info.get("redis_version") or "")
        return tuple(int(part) for part in text.split(".") if part.isdigit())

    @property
    def shown_version(self) -> str:
        return f"{self.product} {'.'.join(map(str, self.version))}"

    def number(self, name: str) -> int:
        return int(self.info.get(name) or 0)


# -- settings ---------------------------------------------------------------------------------------------------


def check_settings() -> Iterator[Finding]:
    """What Django's system checks say of our settings: unknown keys, wrong types, a cache in the engine's database."""
    found = [message for message in system_checks.run_checks(tags=[TAG]) if not message.is_silenced()]
    yield from (_of_message(message, "settings", "SCHEDULER") for message in found)
    if not found:
        yield Finding("settings", "ok", f"namespace {get_settings().namespace}")


def check_time_zone() -> Iterator[Finding]:
    if not django_settings.USE_TZ:
        yield Finding(
            "time zone",
            "failed",
            "Times are stored without a zone: a schedule runs an hour off after each change of clocks.",
            "USE_TZ",
            "Set USE_TZ = True.",
        )
        return
    try:
        zoneinfo.ZoneInfo(django_settings.TIME_ZONE)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        yield Finding(
            "time zone",
            "failed",
            f"The zone {django_settings.TIME_ZONE!r} is not known on this machine.",
            "TIME_ZONE",
            "Correct the name, or install the zones: pip install tzdata.",
        )
        return
    yield Finding("time zone", "ok", django_settings.TIME_ZONE)


# -- the store --------------------------------------------------------------------------------------------------


def check_store() -> Iterator[Finding]:
    """Asks the server about itself and judges the answer; nothing can be said of one that does not answer."""
    try:
        server = _ask_server()
    except SchedulerError as error:
        yield Finding("store", "failed", str(error), "SCHEDULER_REDIS_URL", error.fix)
        for name in ("server version", "persistence", "memory", "clock", "workers"):
            yield Finding(name, "skipped", "The store does not answer.")
        return
    yield from judge_server(server)
    yield from judge_clock(server)
    yield from _judge_workers()


def judge_server(server: Server) -> Iterator[Finding]:
    """What the system checks say of the server's answer, and what only a look at the moment shows."""
    found = [
        _of_message(message, *PLACES.get(message.id or "", PLACES["jobs.E025"]))
        for message in server_problems(server.info)
    ]
    found += [*_judge_flaws(server), *_judge_memory(server)]
    if server.url.startswith("memory:"):
        found = [finding for finding in found if finding.check != "persistence"]
        kept = "nothing, as memory: says: its jobs end with the process that started it"
    else:
        found += _judge_snapshots(server)
        kept = "append-only file"
    limit = server.number("maxmemory")
    well = {
        "store": f"{server.product} at {server.url} answers",
        "server version": server.shown_version,
        "persistence": kept,
        "memory": f"{_megabytes(server.number('used_memory'))} used, limit {_megabytes(limit) if limit else 'none'}",
    }
    for check, detail in well.items():
        yield from [finding for finding in found if finding.check == check] or [Finding(check, "ok", detail)]


PLACES = {
    "jobs.E022": ("server version", "SCHEDULER_REDIS_URL"),
    "jobs.E023": ("memory", "maxmemory-policy"),
    "jobs.W023": ("memory", "maxmemory-policy"),
    "jobs.W024": ("persistence", "appendonly"),
    "jobs.E024": ("persistence", "appendonly"),
    "jobs.E025": ("store", "SCHEDULER_REDIS_URL"),
}
"""System check → where doctor shows it, and the setting that mends it."""


def _judge_flaws(server: Server) -> Iterator[Finding]:
    if names := [flaw.names for flaw in FLAWS if _is_open(flaw, server)]:
        # A warning only: distributions mend old versions without changing the number that the server tells.
        yield Finding(
            "server version",
            "warning",
            f"{server.shown_version} has known flaws in its script engine, unless its distribution has mended them: "
            f"{'; '.join(names)}.",
            "the server's package",
            "Update the server, and let only trusted programs reach it.",
        )


def _is_open(flaw: Flaw, server: Server) -> bool:
    lines = flaw.fixed_in.get(server.product)
    if not lines:
        return False
    line = server.version[:2]
    if line in lines:
        return server.version < (*line, lines[line])
    return line < max(lines)


def _judge_snapshots(server: Server) -> Iterator[Finding]:
    if server.number("aof_enabled"):
        return
    if not server.saves:
        yield Finding(
            "persistence",
            "failed",
            "The server saves no snapshots either: a restart loses all jobs.",
            "appendonly",
            "Set appendonly yes.",
        )
    elif server.info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding(
            "persistence", "failed", "The last snapshot failed.", "save", "Look for a full disk on the server."
        )


def _judge_memory(server: Server) -> Iterator[Finding]:
    limit, used = server.number("maxmemory"), server.number("used_memory")
    if limit and used > MEMORY_WARNING * limit:
        yield Finding(
            "memory",
            "warning",
            f"{used / limit:.0%} of {_megabytes(limit)} is used; when it is full every enqueue is refused.",
            "maxmemory",
            "Raise maxmemory, or keep ended jobs for a shorter time (RETENTION_SECONDS).",
        )


def judge_clock(server: Server) -> Iterator[Finding]:
    skew = server.time - server.asked_at
    if abs(skew) <= SKEW_WARNING:
        yield Finding("clock", "ok", f"{spoken(abs(skew))} apart from the server")
        return
    side = "ahead of" if skew > timedelta() else "behind"
    yield Finding(
        "clock",
        "failed" if abs(skew) > SKEW_FAILURE else "warning",
        f"The server's clock is {spoken(abs(skew))} {side} this machine's: jobs start by the server's.",
        "system clock",
        "Let both keep time with NTP (chrony or systemd-timesyncd).",
    )


def _judge_workers() -> Iterator[Finding]:
    workers, pools = api.workers.list(), api.pools.list()
    alive = [worker for worker in workers if worker.alive and not worker.is_host]
    yield from _judge_service(alive, pools)
    for worker in alive:
        if worker.state.startswith("not consuming"):
            yield Finding(
                "workers", "failed", f"Worker {worker.id} is {worker.state}.", "runworkers", "Look at its log."
            )
    for worker in workers:
        if not worker.alive:
            yield Finding(
                "workers",
                "warning",
                f"Worker {worker.id} has been silent since {iso(moment(worker.last_seen_ms))}.",
                "runworkers",
                "If it was killed on purpose, its row goes by itself within an hour.",
            )


def _judge_service(alive: Sequence[Worker], pools: Sequence[Pool]) -> Iterator[Finding]:
    """Whether somebody serves each pool in which jobs are ready to run."""
    if not alive:
        waiting = sum(pool.ready for pool in pools)
        yield Finding(
            "workers",
            "failed" if waiting else "warning",
            f"No worker is running; jobs ready to run: {waiting:,}.",
            "runworkers",
            "Start one: manage.py runworkers",
        )
        return
    served = {pool for worker in alive for pool in worker.pools}
    yield Finding("workers", "ok", f"{len(alive)} alive, serving {', '.join(sorted(served)) or 'no pool'}")
    for pool in pools:
        if pool.ready and pool.name not in served:
            yield Finding(
                "workers",
                "failed",
                f"No live worker serves pool {pool.name}; jobs ready to run: {pool.ready:,}.",
                "runworkers",
                f"Start one: manage.py runworkers --pool {pool.name}",
            )


def _of_message(message: system_checks.CheckMessage, check: str, setting: str) -> Finding:
    status = "failed" if message.level >= system_checks.ERROR else "warning"
    return Finding(check, status, f"{message.msg} ({message.id})", setting, message.hint or "")


def _megabytes(count: int) -> str:
    return f"{count / 2**20:,.0f} MB"


def _ask_server() -> Server:
    with api.budget(STORE_SECONDS):
        api.server()  # may have to start the embedded server first: that time is no difference of clocks
        before = timezone.now()
        answer = api.server()
        after = timezone.now()
    return Server(
        url=answer["url"],
        info=answer["info"],
        saves=bool(answer["save"]),
        time=datetime.fromtimestamp(answer["time_ms"] / 1000, before.tzinfo),
        asked_at=before + (after - before) / 2,
    )


# -- the database and the channel layer -------------------------------------------------------------------------


def check_migrations() -> Iterator[Finding]:
    for alias in connections:
        connection = connections[alias]
        try:
            executor = MigrationExecutor(connection)
            plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except Exception as error:  # drivers raise what they like; all of it means: not usable
            yield Finding(
                "database",
                "failed",
                f"The database {alias!r} cannot be used: {_first_line(error)}",
                "DATABASE_URL",
                "Start it or correct the address.",
            )
            continue
        finally:
            connection.close()
        if plan:
            names = ", ".join(f"{migration.app_label}.{migration.name}" for migration, _ in plan[:3])
            more = f" and {len(plan) - 3} more" if len(plan) > 3 else ""
            yield Finding(
                "database",
                "failed",
                f"The database {alias!r} lacks {len(plan)} migrations: {names}{more}.",
                "DATABASE_URL",
                "Run: manage.py migrate",
            )
        else:
            yield Finding("database", "ok", f"{connection.vendor} {alias!r}, all migrations applied")


def check_channel_layer() -> Iterator[Finding]:
    """Sends one message through the layer: configured right and reachable are then both proven."""
    layers = getattr(django_settings, "CHANNEL_LAYERS", {})
    backend = layers.get("default", {}).get("BACKEND", "")
    if not backend:
        yield Finding("channel layer", "skipped", "None is configured; the dashboard needs none.")
    elif backend.endswith("channels_redis.core.RedisChannelLayer"):
        yield Finding(
            "channel layer",
            "failed",
            "The list-based Redis layer breaks idle connections after 5 seconds with redis-py 8.",
            "CHANNEL_LAYERS",
            "Use channels_redis.pubsub.RedisPubSubChannelLayer.",
        )
    elif backend.endswith("InMemoryChannelLayer"):
        yield Finding(
            "channel layer",
            "warning",
            "The in-memory layer reaches only its own process.",
            "CHANNEL_LAYERS",
            "Use channels_redis.pubsub.RedisPubSubChannelLayer.",
        )
    else:
        try:
            asyncio.run(_through_channel_layer())
        except Exception as error:  # whatever it is: no message gets through
            yield Finding(
                "channel layer",
                "failed",
                f"No message gets through the channel layer: {_first_line(error)}",
                "CHANNEL_LAYERS",
                "Its hosts must name a running server.",
            )
        else:
            yield Finding("channel layer", "ok", backend.rpartition(".")[2])


async def _through_channel_layer() -> None:
    # By name: the library works in projects that have no Channels at all.
    layer = import_string("channels.layers.get_channel_layer")()
    group = f"doctor-{uuid4().hex}"
    async with asyncio.timeout(CHANNEL_SECONDS):
        channel = await layer.new_channel()
        await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "doctor"})
        await layer.receive(channel)
        await layer.group_discard(group, channel)


def check_store_then_channel_layer() -> Iterator[Finding]:
    """In this order: the layer may stand on the embedded server, which starts when the store is asked."""
    yield from check_store()
    yield from check_channel_layer()


# -- all of them ------------------------------------------------------------------------------------------------

Check = Callable[[], Iterable[Finding]]


def check_schedules() -> Iterator[Finding]:
    """Whether something should have fired and did not, and whether some row cannot fire."""
    with api.budget(STORE_SECONDS):
        late = api.schedules.late(limit=1000)
    if late:
        first = late[0]
        yield Finding(
            "schedules",
            "failed",
            f"{len(late):,} should have fired and did not: {first.why}. The first is {first.name}, "
            f"{spoken(timedelta(seconds=first.seconds))} late.",
            "runworkers",
            "Start a worker host without --no-schedules, or resume the scheduler.",
        )
    broken = [(row.name, row.error) for row in api.schedules.list() if row.error]
    for name, error in broken[:3]:
        yield Finding("schedules", "warning", f"{name}: {error}", "the schedule", "See 'manage.py schedules show'.")
    if len(broken) > 3:
        yield Finding("schedules", "warning", f"{len(broken) - 3:,} more have an error.", "the schedule", "")
    if not late and not broken:
        yield Finding("schedules", "ok", "none is late")


CHECKS: dict[str, Check] = {
    "settings": check_settings,
    "store": check_store_then_channel_layer,
    "database": check_migrations,
    "schedules": check_schedules,
    "time zone": check_time_zone,
}
"""In the order in which they are shown."""


def diagnose(checks: dict[str, Check] | None = None, *, allowed_seconds: float = ALLOWED_SECONDS) -> list[Finding]:
    """Runs all checks side by side and answers what they found, in order."""
    checks = CHECKS if checks is None else checks
    found: dict[str, list[Finding]] = {name: [] for name in checks}
    # Daemon threads: one that hangs for good must not keep the process alive.
    threads = {
        name: threading.Thread(target=_run, args=(name, check, found[name]), daemon=True)
        for name, check in checks.items()
    }
    for thread in threads.values():
        thread.start()
    over = time.monotonic() + allowed_seconds
    for name, thread in threads.items():
        thread.join(max(0.0, over - time.monotonic()))
        if thread.is_alive():
            found[name].append(
                Finding(
                    name,
                    "failed",
                    f"No answer within {allowed_seconds:.0f} seconds.",
                    "",
                    "Something hangs: see what it connects to.",
                )
            )
    return [finding for name in checks for finding in found[name]]


def _run(name: str, check: Check, found: list[Finding]) -> None:
    try:
        found.extend(check())
    except Exception as error:  # a check that breaks is a finding too
        fix = error.fix if isinstance(error, SchedulerError) else ""
        found.append(Finding(name, "failed", f"{type(error).__name__}: {_first_line(error)}", "", fix))
    finally:
        connections.close_all()  # this thread's own


def _first_line(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time."
    return (str(error).strip() or type(error).__name__).splitlines()[0]
