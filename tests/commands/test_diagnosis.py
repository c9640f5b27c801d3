"""What ``doctor`` makes of what it is told. The processes are in ``test_processes``."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.core.checks import Error, register
from django.core.checks.registry import registry
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from jobs import api
from jobs.engine import WorkerInfo, get_engine
from jobs.exceptions import StoreUnavailable
from jobs.management.diagnosis import Finding, diagnose, project
from jobs.management.diagnosis.channels import check_channel_layer
from jobs.management.diagnosis.project import check_migrations, check_settings, check_time_zone
from jobs.management.diagnosis.schedules import check_schedules
from jobs.management.diagnosis.server import Server, judge_clock, judge_server
from jobs.management.diagnosis.store import check_store
from jobs.models import Schedule
from jobs.store.keys import SettingKeys
from jobs.store.topology import FORMAT
from tests.support.valkey import free_port
from tests.support.wait import eventually

NOW = datetime(2026, 1, 31, tzinfo=UTC)
WELL = {
    "redis_version": "7.2.4",
    "valkey_version": "9.1.2",
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "rdb_last_bgsave_status": "ok",
    "maxmemory": 0,
    "maxmemory_policy": "noeviction",
    "used_memory": 10 * 2**20,
    "role": "master",
}


def judged(url="redis://host/0", saves=True, **info):
    """Check → its worst finding, of a server that is well but for what is given; None leaves a fact out."""
    facts = {name: value for name, value in (WELL | info).items() if value is not None}
    server = Server(url, facts, saves, NOW, NOW)
    findings = sorted(judge_server(server), key=lambda finding: ("ok", "warning", "failed").index(finding.status))
    return {finding.check: finding for finding in findings}


def redis(version):
    return judged(valkey_version=None, redis_version=version)


def test_a_server_that_is_well_is_told_in_a_few_words():
    found = judged()

    assert {finding.status for finding in found.values()} == {"ok"}
    assert found["server version"].detail == "Valkey 9.1.2"
    assert found["memory"].detail == "10 MB used, limit none"


@pytest.mark.parametrize("version", ["7.2.10", "7.4.5", "8.0.3", "8.2.1", "7.3.0"])
def test_an_unpatched_redis_is_named(version):
    finding = redis(version)["server version"]

    assert finding.status == "warning"
    assert f"Redis {version}" in finding.detail
    assert "CVE-2025-49844" in finding.detail
    assert finding.fix.startswith("Update")


@pytest.mark.parametrize("version", ["7.2.11", "7.4.6", "8.0.4", "8.2.2", "8.4.0", "9.0.0"])
def test_a_patched_redis_is_well(version):
    assert redis(version)["server version"].status == "ok"


FIXED = [
    (product, *line, patch)
    for product, lines in {
        "redis": {(7, 2): 11, (7, 4): 6, (8, 0): 4, (8, 2): 2},
        "valkey": {(8, 0): 8, (8, 1): 7, (9, 0): 4},
    }.items()
    for line, patch in lines.items()
]
"""The first release of each line that has no known flaw, as the two projects have told. Older lines got none."""


@pytest.mark.parametrize(("product", "major", "minor", "patch"), FIXED)
def test_each_line_is_well_from_its_patched_release_on_and_not_before(product, major, minor, patch):
    def flaws(patch: int) -> bool:
        version = f"{major}.{minor}.{patch}"
        found = redis(version) if product == "redis" else judged(valkey_version=version)
        return "known flaws" in found["server version"].detail

    assert (flaws(patch - 1), flaws(patch)) == (True, False)


def test_all_flaws_of_an_old_server_are_named_once():
    detail = judged(valkey_version="8.1.3")["server version"].detail

    assert detail.count("CVE-2025-49844") == detail.count("CVE-2026-23631") == 1
    assert "CVE-2026-23631" in judged(valkey_version="8.1.6")["server version"].detail
    assert "CVE-2025-49844" not in judged(valkey_version="8.1.6")["server version"].detail
    assert "CVE-2025-49844" in judged(valkey_version="7.2.10")["server version"].detail
    assert "CVE-2025-49844" not in judged(valkey_version="7.2.11")["server version"].detail


def test_a_server_too_old_for_the_scripts_fails():
    assert redis("6.0.16")["server version"].status == "failed"


def test_a_server_that_only_remembers_fails():
    finding = judged(saves=False, aof_enabled=0)["persistence"]

    assert (finding.status, finding.setting) == ("failed", "appendonly")


def test_snapshots_alone_are_a_warning():
    assert judged(aof_enabled=0)["persistence"].status == "warning"


@pytest.mark.parametrize(
    "info", [{"aof_last_write_status": "err"}, {"aof_enabled": 0, "rdb_last_bgsave_status": "err"}]
)
def test_a_disk_that_cannot_be_written_fails(info):
    assert judged(**info)["persistence"].status == "failed"


def test_a_memory_server_keeps_nothing_on_purpose():
    assert judged(url="memory:", saves=False, aof_enabled=0)["persistence"].status == "ok"


def test_a_policy_that_evicts_fails_where_there_is_a_limit():
    assert judged(maxmemory_policy="allkeys-lru", maxmemory=2**30)["memory"].status == "failed"
    assert judged(maxmemory_policy="allkeys-lru")["memory"].status == "warning"
    assert judged(maxmemory_policy="allkeys-lru")["memory"].setting == "maxmemory-policy"


@pytest.mark.parametrize(("used", "status"), [(84, "ok"), (86, "warning"), (100, "warning")])
def test_memory_that_is_nearly_full_is_a_warning(used, status):
    finding = judged(maxmemory=100 * 2**20, used_memory=used * 2**20)["memory"]

    assert finding.status == status
    assert (f"{used}% of 100 MB" in finding.detail) == (status == "warning")


def test_a_replica_fails():
    assert judged(role="slave")["store"].status == "failed"


@pytest.mark.parametrize(
    ("seconds", "status"),
    [
        (0, "ok"),
        (1.9, "ok"),
        (-1.9, "ok"),
        (2.1, "warning"),
        (-3, "warning"),
        (29, "warning"),
        (31, "failed"),
        (-60, "failed"),
    ],
)
def test_clocks_may_not_drift_apart(seconds, status):
    [finding] = judge_clock(Server("", {}, True, NOW + timedelta(seconds=seconds), NOW))

    assert finding.status == status


def test_which_side_is_ahead_is_said():
    [ahead] = judge_clock(Server("", {}, True, NOW + timedelta(seconds=60), NOW))
    [behind] = judge_clock(Server("", {}, True, NOW - timedelta(seconds=60), NOW))

    assert "1 min ahead of this machine's" in ahead.detail
    assert "1 min behind this machine's" in behind.detail


def about(check):
    return [finding for finding in check_store() if finding.check == check]


def test_a_real_server_answers_all_that_is_asked():
    found = {finding.check: finding.status for finding in check_store()}

    assert (found["store"], found["server version"], found["clock"]) == ("ok", "ok", "ok")


def test_no_worker_is_a_warning_while_nothing_waits():
    [finding] = about("workers")

    assert (finding.status, finding.fix) == ("warning", "Start one: manage.py runworkers")


def test_no_worker_while_jobs_wait_fails():
    api.enqueue("commands.greet", {})

    [finding] = about("workers")

    assert (finding.status, finding.detail) == ("failed", "No worker is running; jobs ready to run: 1.")


def alive(*states, ttl_ms=60_000):
    """Workers of the pool ``default`` that said so just now."""
    facts = {"host": "h", "hostname": "h", "pid": 1, "started_at_ms": 1, "pools": {"default": 1}}
    infos = [WorkerInfo(id=f"w{number}", state=state, **facts) for number, state in enumerate(states, 1)]
    get_engine().workers.beat(infos, ttl_ms=ttl_ms)


def test_jobs_that_wait_where_nobody_serves_fail():
    alive("consuming")
    api.enqueue("commands.greet", {}, pool="critical")

    well, failed = about("workers")

    assert (well.status, well.detail) == ("ok", "1 alive, serving default")
    assert (failed.status, failed.fix) == ("failed", "Start one: manage.py runworkers --pool critical")


def test_a_worker_that_takes_nothing_fails():
    alive("not consuming: the store is away", "consuming")

    well, failed = about("workers")

    assert well.detail == "2 alive, serving default"
    assert (failed.status, failed.detail) == ("failed", "Worker w1 is not consuming: the store is away.")


def test_a_host_that_somebody_paused_is_a_warning_and_its_workers_do_not_fail():
    state = "not consuming: paused by ana: disk"
    facts = {"host": "h", "hostname": "h", "pid": 1, "started_at_ms": 1, "state": state}
    infos = [WorkerInfo(id="h", pools={}, **facts), WorkerInfo(id="h.1", pools={"default": 2}, **facts)]
    get_engine().workers.beat(infos, ttl_ms=60_000)
    get_engine().workers.pause("h", by="ana", reason="disk")

    well, paused = about("workers")

    assert (well.status, paused.status) == ("ok", "warning")
    assert paused.detail == "Worker host h takes no new jobs: paused by ana: disk."
    assert paused.fix == "End the pause: manage.py workers resume h"


def test_a_worker_that_fell_silent_is_a_warning():
    alive("consuming", ttl_ms=1)

    silent = eventually(lambda: [finding for finding in about("workers") if "silent" in finding.detail])

    assert silent[0].status == "warning"


def test_system_checks_of_ours_are_shown_with_their_hint():
    def broken(app_configs, **_):
        return [Error("A cache sits there.", hint="Move it.", id="jobs.E999")]

    register(broken, "jobs")
    try:
        findings = [*check_settings()]
    finally:
        registry.registered_checks.remove(broken)

    assert Finding("settings", "failed", "A cache sits there. (jobs.E999)", "SCHEDULER", "Move it.") in findings


def test_a_project_without_zones_fails(settings):
    settings.USE_TZ = False

    [finding] = check_time_zone()

    assert (finding.status, finding.setting) == ("failed", "USE_TZ")


def test_a_zone_that_this_machine_does_not_know_fails(settings):
    settings.TIME_ZONE = "Europe/Berlim"

    [finding] = check_time_zone()

    assert (finding.status, finding.setting) == ("failed", "TIME_ZONE")
    assert "'Europe/Berlim'" in finding.detail


@pytest.mark.parametrize(
    ("backend", "status"),
    [
        (None, "skipped"),
        ("channels.layers.InMemoryChannelLayer", "warning"),
        ("channels_redis.core.RedisChannelLayer", "failed"),
    ],
)
def test_channel_layers_that_cannot_serve_are_named(settings, backend, status):
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend}} if backend else {}

    [finding] = check_channel_layer()

    assert finding.status == status


def test_a_channel_layer_through_which_a_message_gets_is_well(settings, valkey_url):
    layer = "channels_redis.pubsub.RedisPubSubChannelLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer, "CONFIG": {"hosts": [valkey_url]}}}

    [finding] = check_channel_layer()

    assert (finding.status, finding.detail) == ("ok", "RedisPubSubChannelLayer")


def test_a_channel_layer_whose_server_is_away_fails(settings):
    layer = "channels_redis.pubsub.RedisPubSubChannelLayer"
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": layer, "CONFIG": {"hosts": [f"redis://127.0.0.1:{free_port()}"]}}}

    [finding] = check_channel_layer()

    assert (finding.status, finding.setting) == ("failed", "CHANNEL_LAYERS")
    assert "No message gets through" in finding.detail


@pytest.mark.django_db
def test_a_migrated_database_is_well():
    assert {finding.status for finding in check_migrations()} == {"ok"}


@pytest.mark.django_db
def test_a_database_that_lacks_migrations_names_the_first_of_them():
    MigrationRecorder(connection).migration_qs.filter(app="jobs").delete()

    [finding] = check_migrations()

    assert finding.status == "failed"
    assert "lacks" in finding.detail
    assert "jobs.0001" in finding.detail
    assert finding.fix == "Run: manage.py migrate"


@pytest.mark.django_db
def test_a_database_that_cannot_be_used_fails(monkeypatch):
    def away(*_args, **_kwargs):
        raise OperationalError("no such host\nand more")

    monkeypatch.setattr(project, "MigrationExecutor", away)

    [finding] = check_migrations()

    assert finding.status == "failed"
    assert finding.detail.endswith("cannot be used: no such host")


@pytest.mark.django_db
def test_of_many_schedules_with_an_error_three_are_named_and_the_rest_counted():
    for number in range(5):
        Schedule.objects.create(name=f"s{number}", job_type="commands.greet", cron="0 5 * * *", error=f"bad {number}")

    findings = list(check_schedules())

    assert [finding.detail for finding in findings] == ["s0: bad 0", "s1: bad 1", "s2: bad 2", "2 more have an error."]
    assert {finding.status for finding in findings} == {"warning"}


@pytest.mark.django_db
def test_schedules_that_are_in_time_are_well():
    assert [(finding.status, finding.detail) for finding in check_schedules()] == [("ok", "none is late")]


def test_of_a_store_that_does_not_answer_nothing_else_is_said(monkeypatch):
    def away():
        raise StoreUnavailable("gone", fix="Start it.")

    monkeypatch.setattr("jobs.management.diagnosis.store.ask_server", away)

    first, *others = check_store()

    assert (first.check, first.status, first.detail, first.fix) == ("store", "failed", "gone", "Start it.")
    assert {finding.status for finding in others} == {"skipped"}
    assert [finding.check for finding in others] == ["server version", "persistence", "memory", "clock", "workers"]


def test_checks_run_side_by_side_and_one_that_hangs_is_a_finding():
    release = threading.Event()

    def hangs():
        release.wait(10)
        return []

    def breaks():
        raise RuntimeError("first line\nsecond line")

    try:
        findings = diagnose(
            {"hangs": hangs, "breaks": breaks, "well": lambda: [Finding("well", "ok", "")]}, allowed_seconds=0.2
        )
    finally:
        release.set()

    assert [(finding.check, finding.status) for finding in findings] == [
        ("hangs", "failed"),
        ("breaks", "failed"),
        ("well", "ok"),
    ]
    assert findings[1].detail == "RuntimeError: first line"


def test_a_store_that_newer_code_has_written_is_named():
    engine = get_engine()
    engine.store.client.set(SettingKeys(engine.store.namespace).format, FORMAT + 1)

    (finding,) = [found for found in check_store() if found.check == "workers"]

    assert finding.status == "failed"
    assert f"has format {FORMAT + 1}" in finding.detail
    assert "deploy" in finding.fix
