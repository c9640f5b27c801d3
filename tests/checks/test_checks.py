"""System checks: each danger is named, with the fix, and a sound project hears nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.core.checks import registry as check_registry

from jobs import checks, conf
from jobs.registry import JobType as RegisteredType
from jobs.registry import registry

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings as DjangoSettings

    from tests.support.valkey import ValkeyServer

ENGINE = "redis://redis.internal:6379/0"


def ids(found: list[CheckMessage]) -> list[str]:
    return [str(message.id).removeprefix("jobs.") for message in found]


@pytest.fixture
def scheduler(settings: DjangoSettings) -> Callable[..., None]:
    """Sets the SCHEDULER dict."""

    def put(**values: Any) -> None:
        settings.SCHEDULER = values

    return put


# Settings ------------------------------------------------------------------------------------------------------------


def test_this_project_passes_its_own_checks() -> None:
    assert run_checks(tags=["jobs"]) == []


def test_an_unknown_setting_is_an_error_that_names_the_nearest_one(scheduler: Callable[..., None]) -> None:
    scheduler(LEASE_SECOND=5)

    (message,) = checks.check_settings(None)

    assert ids([message]) == ["E001"]
    assert "LEASE_SECOND" in message.msg
    assert "LEASE_SECONDS" in str(message.hint)


def test_a_setting_of_the_wrong_type_is_an_error(scheduler: Callable[..., None]) -> None:
    scheduler(LEASE_SECONDS="10")

    (message,) = checks.check_settings(None)

    assert ids([message]) == ["E002"]
    assert "'10'" in message.msg


def test_settings_that_cannot_be_read_do_not_break_the_other_checks(scheduler: Callable[..., None]) -> None:
    scheduler(LEASE_SECONDS="10")

    assert ids(run_checks(tags=["jobs"], include_deployment_checks=True))[0] == "E002"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({"REDIS_URL": "http://localhost"}, ["E003"]),
        ({"REDIS_URL": "localhost:6379"}, ["E003"]),
        ({"REDIS_URL": "embedded:"}, []),
        ({"REDIS_URL": "redis+cluster://a:1,b:2"}, []),
        ({"NAMESPACE": "a{b}"}, ["E004"]),
        ({"NAMESPACE": ""}, ["E004"]),
        ({"POOLS": {"no spaces": 1, "none": 0, "ok": 3}}, ["E005", "E005"]),
        ({"MIDDLEWARE": ["jobs.nowhere.Thing"]}, ["E006"]),
        ({"ENQUEUE_MIDDLEWARE": ["jobs"]}, ["E006"]),
        ({"MIDDLEWARE": ["pathlib.Path"]}, []),
        ({"MIDDLEWARE": ["jobs.middleware.Logging"], "ENQUEUE_MIDDLEWARE": ["jobs.middleware.Tracing"]}, []),
        ({"MIDDLEWARE": ["jobs.middleware.__doc__"]}, ["E006"]),
        ({"ON_DEAD": "jobs.nowhere.call", "ON_LONG_QUEUE": "pathlib.Paht"}, ["E006", "E006"]),
    ],
)
def test_values_that_cannot_work_are_errors(
    scheduler: Callable[..., None], values: dict[str, Any], found: list[str]
) -> None:
    scheduler(**values)

    messages = checks.check_settings(None)

    assert ids(messages) == found
    assert all(message.hint for message in messages)


def test_a_mistyped_path_is_answered_with_the_nearest_one(scheduler: Callable[..., None]) -> None:
    scheduler(MIDDLEWARE=["jobs.middleware.Loging"])

    (message,) = checks.check_settings(None)

    assert "'jobs.middleware.Loging'" in message.msg
    assert message.hint is not None
    assert message.hint.startswith("Did you mean 'jobs.middleware.Logging'?")


def test_a_password_in_a_wrong_url_is_not_printed(scheduler: Callable[..., None]) -> None:
    scheduler(REDIS_URL="reddis://user:secret@host/0")

    assert "secret" not in checks.check_settings(None)[0].msg


def unresolved(to: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    """``@job`` takes it, since what it annotates might be defined further down."""


def resolved(to: int) -> None:
    """Fits."""


def test_a_job_type_whose_signature_cannot_be_a_payload_is_an_error() -> None:
    with registry.restored():
        registry.add(RegisteredType(unresolved, name="letter.print"))
        registry.add(RegisteredType(resolved, name="letter.send"))

        (message,) = checks.check_job_types(None)

    assert ids([message]) == ["E007"]
    assert "letter.print" in message.msg
    assert "Nowhere" in message.msg


# Caches --------------------------------------------------------------------------------------------------------------


def clashes(settings: DjangoSettings, engine: str, cache: dict[str, Any]) -> list[str]:
    settings.SCHEDULER = {"REDIS_URL": engine}
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}, "shared": cache}
    return ids(checks.check_caches(None))


def core(location: object, **options: Any) -> dict[str, Any]:
    return {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": location, "OPTIONS": options}


def django_redis(location: object, **options: Any) -> dict[str, Any]:
    return {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": location, "OPTIONS": options}


@pytest.mark.parametrize(
    ("engine", "cache"),
    [
        (ENGINE, core("redis://redis.internal:6379/0")),
        (ENGINE, core("redis://redis.internal")),
        (ENGINE, core("rediss://user:password@REDIS.internal:6379/0")),
        (ENGINE, core(["redis://other:6379/0", "redis://redis.internal:6379/0"])),
        (ENGINE, core("redis://other:6379/0;redis://redis.internal:6379/0")),
        (ENGINE, django_redis("redis://redis.internal:6379/0")),
        (ENGINE, django_redis("redis://redis.internal:6379?db=0")),
        (ENGINE, {"BACKEND": "myproject.cache.Ours", "LOCATION": "valkey://redis.internal:6379/0"}),
        ("redis://localhost/3", core("redis://127.0.0.1:6379", db=3)),
        ("redis://localhost/3", django_redis("redis://[::1]:6379", CONNECTION_POOL_KWARGS={"db": 3})),
        ("unix:///run/valkey.sock?db=1", core("unix:///run/valkey.sock?db=1")),
        ("redis+cluster://a:7000,b:7000", django_redis("redis://b:7000/0")),
        ("redis+sentinel://s1:26379,s2:26379/main/2", django_redis("redis://main/2", SENTINELS=[("s2", 26379)])),
    ],
)
def test_a_cache_in_the_engines_database_is_an_error(
    settings: DjangoSettings, engine: str, cache: dict[str, Any]
) -> None:
    assert clashes(settings, engine, cache) == ["E010"]


@pytest.mark.parametrize(
    ("engine", "cache"),
    [
        (ENGINE, core("redis://redis.internal:6379/1")),
        (ENGINE, core("redis://redis.internal:6380/0")),
        (ENGINE, core("redis://cache.internal:6379/0")),
        (ENGINE, core("redis://redis.internal:6379/1", db=0)),
        (ENGINE, django_redis("redis://redis.internal:6379", CONNECTION_POOL_KWARGS={"db": 2})),
        (ENGINE, {"BACKEND": "django.core.cache.backends.filebased.FileBasedCache", "LOCATION": "/var/cache"}),
        (ENGINE, {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache_table"}),
        (ENGINE, core("redis://[broken")),
        ("unix:///run/valkey.sock?db=1", core("unix:///run/valkey.sock?db=2")),
        ("redis+sentinel://s1:26379/main/2", django_redis("redis://other/2", SENTINELS=[("s1", 26379)])),
    ],
)
def test_a_cache_elsewhere_is_none_of_our_business(
    settings: DjangoSettings, engine: str, cache: dict[str, Any]
) -> None:
    assert clashes(settings, engine, cache) == []


def test_a_cache_on_the_embedded_server_is_an_error(settings: DjangoSettings, tmp_path: Path) -> None:
    settings.SCHEDULER = {"REDIS_URL": "embedded:", "VAR_DIR": tmp_path}
    place = checks.engine_place(conf.get_settings())
    assert place is not None
    settings.CACHES = {"default": core(f"unix://{next(iter(place.servers))}")}

    assert ids(checks.check_caches(None)) == ["E010"]


def test_sessions_in_that_cache_are_named(settings: DjangoSettings) -> None:
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.cached_db"
    settings.SESSION_CACHE_ALIAS = "shared"
    assert clashes(settings, ENGINE, core(ENGINE)) == ["E010"]

    assert "Sessions are kept there too" in checks.check_caches(None)[0].msg


def test_the_classic_channel_layer_is_warned_of_and_the_pub_sub_layer_is_not(settings: DjangoSettings) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer"},
        "other": {"BACKEND": "channels_redis.core.RedisChannelLayer"},
    }

    (message,) = checks.check_channel_layers(None)

    assert ids([message]) == ["W011"]
    assert "'other'" in message.msg


# The server ----------------------------------------------------------------------------------------------------------

SOUND = {"redis_version": "7.2.4", "maxmemory_policy": "noeviction", "maxmemory": 0, "aof_enabled": 1, "role": "master"}


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, []),
        ({"redis_version": "7.0.15"}, ["E022"]),
        ({"redis_version": "8.0.1"}, []),
        ({"maxmemory_policy": "allkeys-lru"}, ["W023"]),
        ({"maxmemory_policy": "volatile-ttl", "maxmemory": 1_000_000}, ["E023"]),
        ({"aof_enabled": 0}, ["W024"]),
        ({"aof_last_write_status": "err"}, ["E024"]),
        ({"role": "slave"}, ["E025"]),
    ],
)
def test_what_a_server_says_of_itself_is_judged(changes: dict[str, Any], found: list[str]) -> None:
    messages = checks.server_problems(SOUND | changes)

    assert ids(messages) == found
    assert all(message.hint for message in messages)


def deploy_findings(url: str, settings: DjangoSettings) -> list[str]:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": url}
    return ids(checks.check_server(None))


def test_a_real_server_without_persistence_is_warned_of(
    settings: DjangoSettings, make_valkey: Callable[..., ValkeyServer]
) -> None:
    assert deploy_findings(make_valkey(appendonly="no").url, settings) == ["W024"]


def test_a_real_server_that_evicts_jobs_is_an_error(
    settings: DjangoSettings, make_valkey: Callable[..., ValkeyServer]
) -> None:
    server = make_valkey(maxmemory="100mb", maxmemory_policy="allkeys-lru")

    assert deploy_findings(server.url, settings) == ["E023"]


def test_a_server_that_is_away_is_said_and_does_not_end_the_checks(
    settings: DjangoSettings, private_valkey: ValkeyServer
) -> None:
    private_valkey.kill()

    assert deploy_findings(private_valkey.url, settings) == ["W021"]


@pytest.mark.parametrize("url", ["embedded:", "memory:"])
def test_the_embedded_server_is_not_for_deployment_and_is_not_started_to_find_out(
    settings: DjangoSettings, url: str, tmp_path: Path
) -> None:
    settings.SCHEDULER = {"REDIS_URL": url, "VAR_DIR": tmp_path / "var"}

    assert ids(checks.check_server(None)) == ["W020"]
    assert not (tmp_path / "var").exists()


def test_the_server_is_asked_only_for_deployment() -> None:
    registered = check_registry.registry

    assert checks.check_server in registered.deployment_checks
    assert checks.check_server not in registered.registered_checks


# Database and runserver ----------------------------------------------------------------------------------------------

SQLITE = {"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}
PREPARED = {"transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode = WAL"}


@pytest.mark.parametrize(
    ("database", "found"),
    [
        (SQLITE, ["W030", "W031"]),
        (SQLITE | {"OPTIONS": PREPARED}, ["W030"]),
        (SQLITE | {"OPTIONS": {"transaction_mode": "IMMEDIATE"}}, ["W030", "W031"]),
        ({"ENGINE": "django.db.backends.postgresql", "NAME": "site"}, []),
    ],
)
def test_sqlites_limits_are_said(
    settings: DjangoSettings, monkeypatch: pytest.MonkeyPatch, database: dict[str, Any], found: list[str]
) -> None:
    monkeypatch.setattr(checks.django_settings, "DATABASES", {"default": database})

    assert ids(checks.check_database(None)) == found


@pytest.mark.parametrize(
    ("arguments", "found"),
    [(["manage.py", "runserver"], ["I032"]), (["manage.py", "check"], []), (["manage.py"], [])],
)
def test_runserver_is_told_that_pages_will_not_update(arguments: list[str], found: list[str]) -> None:
    assert ids(checks.check_runserver(None, arguments=arguments)) == found
