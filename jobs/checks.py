"""System checks: what would lose jobs or fail at run time, said at start, with the fix.

Settings and caches are checked by every ``manage.py check``; the server and the database only with ``--deploy``. All
carry the tag ``jobs``. The first digit of an id says what it is about: 0 settings, 1 caches and channel layers, 2 the
server, 3 the database and how the site is run.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from django.apps import apps
from django.conf import settings as django_settings
from django.core.checks import CheckMessage, Error, Info, Warning, register
from django.utils.module_loading import import_string

from jobs import conf
from jobs.exceptions import OptionInvalid, SchedulerError
from jobs.registry import registry
from jobs.store import embedded
from jobs.store.connection import Store
from jobs.store.topology import checked_pool

TAG = "jobs"

SERVER_PATIENCE_SECONDS = 2.0

OLDEST_SERVER = (7, 2)

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "redis+cluster")

_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")


@register(TAG)
def check_settings(app_configs: object, **_: Any) -> list[CheckMessage]:
    """Unknown keys, wrong types, and values that cannot work."""
    raw = getattr(django_settings, "SCHEDULER", {})
    if found := conf.problems(raw):
        return [
            Error(problem.message, hint=problem.fix, id=f"{TAG}.{'E002' if problem.key in conf.KEYS else 'E001'}")
            for problem in found
        ]
    return [*_check_values(conf.get_settings())]


def _check_values(settings: conf.Settings) -> Iterator[CheckMessage]:
    if settings.redis_url not in embedded.SCHEMES and urlsplit(settings.redis_url).scheme not in SCHEMES:
        yield Error(
            f"SCHEDULER['REDIS_URL'] names no kind of server that is known: {settings.redis_url.split('@')[-1]!r}.",
            hint="Use redis://, rediss://, unix://, redis+sentinel://, redis+cluster://, embedded: or memory:.",
            id=f"{TAG}.E003",
        )
    if not _NAMESPACE.match(settings.namespace):
        yield Error(
            f"SCHEDULER['NAMESPACE'] cannot begin every key: {settings.namespace!r}.",
            hint="Use up to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit.",
            id=f"{TAG}.E004",
        )
    for pool, slots in settings.pools.items():
        try:
            checked_pool(pool)
        except OptionInvalid as error:
            yield Error(f"SCHEDULER['POOLS']: {error}", hint=error.fix, id=f"{TAG}.E005")
        if slots < 1:
            yield Error(
                f"SCHEDULER['POOLS'] gives the pool {pool!r} {slots} slots.",
                hint="Give it at least 1; to stop a pool for a while, pause it.",
                id=f"{TAG}.E005",
            )
    for key in ("middleware", "enqueue_middleware"):
        for dotted_path in getattr(settings, key):
            yield from _check_callable(key, dotted_path, "a callable that takes the next callable and returns one")
    for key, takes in (("on_dead", "the job"), ("on_long_queue", "the pool")):
        if getattr(settings, key):
            yield from _check_callable(key, getattr(settings, key), f"a function that takes {takes}")


def _check_callable(key: str, dotted_path: str, kind: str) -> Iterator[CheckMessage]:
    """What SCHEDULER[key] names must be there and be callable."""
    problem = ""
    try:
        if not callable(import_string(dotted_path)):
            problem = "which is not callable"
    except Exception as error:  # a module may raise anything while it is imported
        problem = f"which cannot be imported: {error}"
    if problem:
        near = _nearest_name(dotted_path)
        yield Error(
            f"SCHEDULER[{key.upper()!r}] names {dotted_path!r}, {problem}",
            hint=f"{near}Write the dotted path of {kind}.",
            id=f"{TAG}.E006",
        )


def _nearest_name(dotted_path: str) -> str:
    """Did-you-mean for the last word, where the module itself is there."""
    module_path, _, name = dotted_path.rpartition(".")
    module = sys.modules.get(module_path)
    names = [known for known, value in vars(module).items() if callable(value)] if module else []
    close = get_close_matches(name, names, n=1)
    return f"Did you mean '{module_path}.{close[0]}'? " if close else ""


@register(TAG)
def check_job_types(app_configs: object, **_: Any) -> list[CheckMessage]:
    """Job types whose signature cannot be a payload: found now rather than at their first enqueue."""
    found: list[CheckMessage] = []
    for job_type in registry.all().values():
        try:
            # Compiles the signature; what it annotates may have been defined after the decorator ran.
            job_type.encode  # noqa: B018
        except (TypeError, OptionInvalid) as error:
            hint = getattr(error, "fix", "") or "Correct the function's signature or the options of its @job."
            found.append(Error(f"The job type {job_type.name!r}: {error}", hint=hint, id=f"{TAG}.E007"))
    return found


# Caches and layers ---------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A database number on some servers; of a cluster or Sentinel group, any one server names the whole."""

    servers: frozenset[str]
    database: int

    def is_same(self, other: Place) -> bool:
        return self.database == other.database and bool(self.servers & other.servers)


@register(TAG)
def check_caches(app_configs: object, **_: Any) -> list[CheckMessage]:
    """A cache on the engine's database: clearing the cache, one line in a shell, would erase every job."""
    settings = _usable_settings()
    return cache_clashes(settings) if settings else []


def cache_clashes(settings: conf.Settings) -> list[CheckMessage]:
    """One error for each of Django's caches that lives in the engine's database number.

    Addresses are compared as written, with ``localhost`` and the loopback addresses as one: two DNS names of one
    machine are not seen through.
    """
    place = engine_place(settings)
    clashes: list[CheckMessage] = []
    for alias, cache in django_settings.CACHES.items():
        if place and any(place.is_same(other) for other in _cache_places(cache)):
            uses = " Sessions are kept there too." if _sessions_use(alias) else ""
            clashes.append(
                Error(
                    f"The cache {alias!r} lives in the engine's own database: clearing it (FLUSHDB) would erase every "
                    f"job.{uses}",
                    hint=f"Give CACHES[{alias!r}] another database number, or better another server. "
                    "A Redis Cluster has only database 0, so there it needs another server.",
                    id=f"{TAG}.E010",
                )
            )
    return clashes


@register(TAG)
def check_channel_layers(app_configs: object, **_: Any) -> list[CheckMessage]:
    """The default layer of channels-redis blocks for five seconds, and redis-py 8 ends a read after five seconds."""
    return [
        Warning(
            f"The channel layer {alias!r} is channels-redis' classic one, whose idle WebSockets break with redis-py 8.",
            hint="Use channels_redis.pubsub.RedisPubSubChannelLayer.",
            id=f"{TAG}.W011",
        )
        for alias, layer in getattr(django_settings, "CHANNEL_LAYERS", {}).items()
        if layer.get("BACKEND") == "channels_redis.core.RedisChannelLayer"
    ]


def engine_place(settings: conf.Settings) -> Place | None:
    """Where the engine's keys are; None for a URL that cannot be read."""
    return _place(embedded.address(settings.redis_url, settings.var_dir))


def _cache_places(cache: Mapping[str, Any]) -> Iterator[Place]:
    location = cache.get("LOCATION") or ()
    urls: Sequence[str] = re.split("[;,]", location) if isinstance(location, str) else list(location)
    options: Mapping[str, Any] = cache.get("OPTIONS") or {}
    pool_options: Mapping[str, Any] = options.get("CONNECTION_POOL_KWARGS") or {}
    database = options.get("db", options.get("DB", pool_options.get("db", 0)))
    sentinels = options.get("SENTINELS") or pool_options.get("sentinels") or ()
    for url in urls:
        place = _place(str(url).strip(), default_database=database)
        if place and sentinels:  # the host of the URL is the name of the Sentinel service
            service = urlsplit(url).hostname
            servers = frozenset(f"{_server(host, int(port))}/{service}" for host, port in sentinels)
            place = place._replace(servers=servers)
        if place:
            yield place


def _place(url: str, *, default_database: object = 0) -> Place | None:
    try:
        parts = urlsplit(url)
        database = int((parse_qs(parts.query).get("db") or [str(default_database)])[0])
        if parts.scheme == "unix":
            # redis-py takes unix:///path and unix://path alike
            return Place(frozenset({unquote(parts.netloc + parts.path)}), database)
        if parts.scheme not in {"redis", "rediss", "valkey", "valkeys", "redis+sentinel", "redis+cluster"}:
            return None
        segments = parts.path.strip("/").split("/")
        sentinel = parts.scheme == "redis+sentinel"
        number = segments[1:] if sentinel else segments
        if number and number[0].isdigit() and "db=" not in parts.query:
            database = int(number[0])
        nodes = parts.netloc.rpartition("@")[2].split(",")
        suffix = f"/{segments[0].lower()}" if sentinel else ""
        servers = {_server(*_host_and_port(node, 26379 if sentinel else 6379)) + suffix for node in nodes}
        return Place(frozenset(servers), database)
    except ValueError:
        return None


def _host_and_port(node: str, default_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{node}")
    return parts.hostname or "localhost", parts.port or default_port


def _server(host: str, port: int) -> str:
    return f"{'localhost' if host in {'127.0.0.1', '::1'} else host.lower()}:{port}"


def _sessions_use(alias: str) -> bool:
    kept_in_cache = django_settings.SESSION_ENGINE.rpartition(".")[2] in {"cache", "cached_db"}
    return bool(kept_in_cache and alias == django_settings.SESSION_CACHE_ALIAS)


# The server ----------------------------------------------------------------------------------------------------------


@register(TAG, deploy=True)
def check_server(app_configs: object, **_: Any) -> list[CheckMessage]:
    """Asks the server whether it may evict or lose jobs. Never starts an embedded one."""
    settings = _usable_settings()
    if settings is None:
        return []
    if settings.redis_url in embedded.SCHEMES:
        return [
            Warning(
                f"The engine runs on the server that comes with it ({settings.redis_url!r}), which serves one machine.",
                hint="Run a Valkey or Redis server and set SCHEDULER_REDIS_URL.",
                id=f"{TAG}.W020",
            )
        ]
    try:
        info = read_server(settings)
    except SchedulerError as error:
        return [Warning(f"The server was not checked. {error}", hint=error.fix or None, id=f"{TAG}.W021")]
    return server_problems(info)


def read_server(settings: conf.Settings) -> Mapping[str, Any]:
    """What the server says of itself (INFO). Raises SchedulerError within a few seconds."""
    store = Store.from_settings(settings)
    try:
        with store.budget(SERVER_PATIENCE_SECONDS):
            return dict(store.describe()["info"])
    finally:
        store.close()


def server_problems(info: Mapping[str, Any]) -> list[CheckMessage]:
    """What an answer to INFO shows that would lose, evict or refuse jobs."""
    return [*_server_problems(info)]


def _server_problems(info: Mapping[str, Any]) -> Iterator[CheckMessage]:
    version = tuple(int(part) for part in re.findall(r"\d+", str(info.get("redis_version", "")))[:2])
    if version and version < OLDEST_SERVER:
        yield Error(
            f"The server speaks Redis {info['redis_version']}; at least 7.2 is needed.",
            hint="Use Valkey 8 or later, or Redis 7.2 or later.",
            id=f"{TAG}.E022",
        )
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        limited = int(info.get("maxmemory") or 0) > 0
        kind, level = (Error, "E023") if limited else (Warning, "W023")
        yield kind(
            f"The server evicts keys when memory is short (maxmemory-policy {policy}): jobs would vanish unseen."
            + ("" if limited else " It has no memory limit yet, so nothing is evicted now."),
            hint="Set maxmemory-policy noeviction; caches belong on a server of their own.",
            id=f"{TAG}.{level}",
        )
    if not int(info.get("aof_enabled") or 0):
        yield Warning(
            "The server keeps no append-only file: a crash loses every job since its last snapshot.",
            hint="Set appendonly yes (appendfsync everysec loses at most a second).",
            id=f"{TAG}.W024",
        )
    elif info.get("aof_last_write_status", "ok") != "ok":
        yield Error(
            "The server cannot write its append-only file and refuses changes.",
            hint="Look for a full disk, or for missing rights, on the server.",
            id=f"{TAG}.E024",
        )
    if info.get("role") == "slave":
        yield Error(
            "The server is a replica: it refuses changes.",
            hint="Name the primary, or use redis+sentinel:// so that it is found after a failover.",
            id=f"{TAG}.E025",
        )


# The database, and how the site is run -------------------------------------------------------------------------------


@register(TAG, deploy=True)
def check_database(app_configs: object, **_: Any) -> list[CheckMessage]:
    """Whether the database stands up to a web server and workers writing at once."""
    return database_problems()


def database_problems() -> list[CheckMessage]:
    """SQLite's limits, and the options that make the best of it."""
    found: list[CheckMessage] = []
    for alias, database in django_settings.DATABASES.items():
        if database.get("ENGINE") != "django.db.backends.sqlite3":
            continue
        found.append(
            Warning(
                f"The database {alias!r} is SQLite: one writer at a time, one machine.",
                hint="Use PostgreSQL where workers run on several machines or write much.",
                id=f"{TAG}.W030",
            )
        )
        options = database.get("OPTIONS", {})
        if options.get("transaction_mode") != "IMMEDIATE" or "wal" not in str(options.get("init_command", "")).lower():
            found.append(
                Warning(
                    f"The database {alias!r} will answer 'database is locked' when workers write at once.",
                    hint='Set OPTIONS to {"timeout": 20, "transaction_mode": "IMMEDIATE", '
                    '"init_command": "PRAGMA journal_mode=WAL"}.',
                    id=f"{TAG}.W031",
                )
            )
    return found


@register(TAG)
def check_runserver(app_configs: object, *, arguments: Iterable[str] | None = None, **_: Any) -> list[CheckMessage]:
    """``runserver`` alone serves no WebSockets: pages work and do not update themselves."""
    if [*(sys.argv if arguments is None else arguments)][1:2] != ["runserver"] or apps.is_installed("daphne"):
        return []
    return [
        Info(
            "runserver serves no WebSockets: the dashboard's pages work, but do not update by themselves.",
            hint="Use `manage.py dev`, or uvicorn with your project's asgi module.",
            id=f"{TAG}.I032",
        )
    ]


def _usable_settings() -> conf.Settings | None:
    """The settings, unless ``check_settings`` has found them unusable and said so."""
    return None if conf.problems(getattr(django_settings, "SCHEDULER", {})) else conf.get_settings()
