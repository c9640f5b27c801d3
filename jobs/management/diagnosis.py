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
from collections.abc import Callable, Iterable, Iterator
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
from jobs.conf import get_settings
from jobs.core.job import iso, moment
from jobs.exceptions import SchedulerError
from jobs.management.durations import spoken

ALLOWED_SECONDS = 12.0
"""What has not answered by then hangs. With the start of the process it stays below the 15 seconds of every command."""

SKEW_WARNING = timedelta(seconds=2)
SKEW_FAILURE = timedelta(seconds=30)
OLDEST_VERSION = (7, 0)
DISK_WAIT_VERSION = (7, 2)
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

    def number(self, name: str) -> int:
        return int(self.info.get(name) or 0)


# -- settings ---------------------------------------------------------------------------------------------------


def check_settings() -> Iterator[Finding]:
    """What Django's system checks say of our settings: unknown keys, wrong types, a cache in the engine's database."""
    found = [message for message in system_checks.run_checks(tags=["jobs"]) if not message.is_silenced()]
    for message in found:
        failed = message.level >= system_checks.ERROR
        yield Finding(
            "settings",
            "failed" if failed else "warning",
            f"{message.msg} ({message.id})",
            "SCHEDULER",
            message.hint or "",
        )
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
    yield Finding("store", "ok", f"{server.product} at {server.url} answers")
    yield from judge_version(server)
    yield from judge_persistence(server)
    yield from judge_memory(server)
    yield from judge_clock(server)
    yield from _judge_workers()


def judge_version(server: Server) -> Iterator[Finding]:
    version = server.version
    shown = f"{server.product} {'.'.join(map(str, version))}"
    if version < OLDEST_VERSION:
        yield Finding(
            "server version",
            "failed",
            f"{shown} is older than {'.'.join(map(str, OLDEST_VERSION))}: the engine's scripts do not run on it.",
            "SCHEDULER_REDIS_URL",
            "Use Valkey 8.1 or later, or Redis 7.2 or later.",
        )
        return
    open_flaws = [flaw.names for flaw in FLAWS if _is_open(flaw, server)]
    if open_flaws:
        # A warning only: distributions mend old versions without changing the number that the server tells.
        yield Finding(
            "server version",
            "warning",
            f"{shown} has known flaws in its script engine unless its distribution has mended them: "
            f"{'; '.join(open_flaws)}.",
            "the server's package",
            "Update the server, and let only trusted programs reach it.",
        )
    else:
        yield Finding("server version", "ok", shown)
    if version < DISK_WAIT_VERSION:
        yield Finding(
            "server version",
            "warning",
            f"{shown} has no WAITAOF: durability='disk' is not possible.",
            "the server's package",
            "Use Valkey, or Redis 7.2 or later, if you need it.",
        )


def _is_open(flaw: Flaw, server: Server) -> bool:
    lines = flaw.fixed_in.get(server.product)
    if not lines:
        return False
    line = server.version[:2]
    if line in lines:
        patch = server.version[2] if len(server.version) > 2 else 0
        return patch < lines[line]
    return line < max(lines)


def judge_persistence(server: Server) -> Iterator[Finding]:
    if server.url.startswith("memory:"):
        yield Finding("persistence", "ok", "none: the jobs of memory: end with the process that started it")
        return
    log, snapshots = bool(server.number("aof_enabled")), server.saves
    if not log and not snapshots:
        yield Finding(
            "persistence",
            "failed",
            "The server keeps everything in memory only: a restart loses all jobs.",
            "appendonly",
            "Set 'appendonly yes' in the server's configuration.",
        )
    elif log and server.info.get("aof_last_write_status", "ok") != "ok":
        yield Finding(
            "persistence",
            "failed",
            "The last write to the append-only file failed.",
            "appendonly",
            "Look at the server's disk and log.",
        )
    elif not log and server.info.get("rdb_last_bgsave_status", "ok") != "ok":
        yield Finding(
            "persistence", "failed", "The last snapshot failed.", "save", "Look at the server's disk and log."
        )
    elif not log:
        yield Finding(
            "persistence",
            "warning",
            "The server only saves snapshots: a crash loses what came after the last one.",
            "appendonly",
            "Set 'appendonly yes' in the server's configuration.",
        )
    else:
        yield Finding("persistence", "ok", "append-only file")


def judge_memory(server: Server) -> Iterator[Finding]:
    limit, used = server.number("maxmemory"), server.number("used_memory")
    policy = str(server.info.get("maxmemory_policy") or "noeviction")
    if policy != "noeviction":
        yield Finding(
            "memory",
            "failed" if limit else "warning",
            f"The server throws away keys when memory is short (maxmemory-policy {policy}): jobs would vanish"
            + ("." if limit else ", as soon as maxmemory is set."),
            "maxmemory-policy",
            "Set 'maxmemory-policy noeviction'; give a cache a server of its own.",
        )
    elif limit and used > MEMORY_WARNING * limit:
        yield Finding(
            "memory",
            "warning",
            f"{used / limit:.0%} of {limit / 2**20:,.0f} MB is used; at 100% every enqueue is refused.",
            "maxmemory",
            "Raise maxmemory, or shorten SCHEDULER['RETENTION_SECONDS'].",
        )
    else:
        shown = f"{limit / 2**20:,.0f} MB" if limit else "none"
        yield Finding("memory", "ok", f"{used / 2**20:,.0f} MB used, limit {shown}")


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
    served = {pool for worker in alive for pool in worker.pools}
    for pool in pools:
        if pool.ready and pool.name not in served:
            yield Finding(
                "workers",
                "failed",
                f"{pool.ready:,} jobs wait in pool {pool.name} and no live worker serves it.",
                "runworkers",
                f"Start one: manage.py runworkers --pool {pool.name}",
            )
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
    if alive:
        yield Finding("workers", "ok", f"{len(alive)} alive, serving {', '.join(sorted(served)) or 'no pool'}")
    else:
        yield Finding(
            "workers", "warning", "No worker is running: jobs wait.", "runworkers", "Start one: manage.py runworkers"
        )


def _ask_server() -> Server:
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
        yield Finding(
            "channel layer",
            "warning",
            "No channel layer is configured: pages show news only when they are loaded again.",
            "CHANNEL_LAYERS",
            "Use channels_redis.pubsub.RedisPubSubChannelLayer.",
        )
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
        except Exception as error:  # any failure means: no live pages
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
    channel = await layer.new_channel()
    group = f"doctor-{uuid4().hex}"
    async with asyncio.timeout(5):
        await layer.group_add(group, channel)
        await layer.group_send(group, {"type": "doctor"})
        await layer.receive(channel)
        await layer.group_discard(group, channel)


# -- all of them ------------------------------------------------------------------------------------------------

Check = Callable[[], Iterable[Finding]]

CHECKS: dict[str, Check] = {
    "settings": check_settings,
    "store": check_store,
    "database": check_migrations,
    "time zone": check_time_zone,
    "channel layer": check_channel_layer,
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
    return (str(error).strip() or type(error).__name__).splitlines()[0]
