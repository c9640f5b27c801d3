"""What ``doctor`` makes of what it is told. The processes are in ``test_processes``."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.core.checks import Error, register
from django.core.checks.registry import registry

from jobs import api
from jobs.engine import WorkerInfo, get_engine
from jobs.management.diagnosis import Finding, diagnose
from jobs.management.diagnosis.channels import check_channel_layer
from jobs.management.diagnosis.project import check_migrations, check_settings, check_time_zone
from jobs.management.diagnosis.server import Server, judge_clock, judge_server
from jobs.management.diagnosis.store import check_store
from jobs.store.keys import SettingKeys
from jobs.store.topology import FORMAT
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


@pytest.mark.parametrize(
    ("version", "status"), [("8.1.3", "warning"), ("8.1.7", "ok"), ("9.0.3", "warning"), ("9.0.4", "ok")]
)
def test_valkey_has_numbers_of_its_own(version, status):
    assert judged(valkey_version=version)["server version"].status == status


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


def test_memory_that_is_nearly_full_is_a_warning():
    assert judged(maxmemory=11 * 2**20)["memory"].status == "warning"
    assert judged(maxmemory=100 * 2**20)["memory"].status == "ok"


def test_a_replica_fails():
    assert judged(role="slave")["store"].status == "failed"


@pytest.mark.parametrize(
    ("seconds", "status"), [(0, "ok"), (1.9, "ok"), (-3, "warning"), (3, "warning"), (-60, "failed")]
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


@pytest.mark.django_db
def test_a_migrated_database_is_well():
    assert {finding.status for finding in check_migrations()} == {"ok"}


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
