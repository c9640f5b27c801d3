"""``pools``, ``scheduler`` and ``workers``: the system as a whole."""

import getpass
import time

import msgspec
import pytest

from jobs import api
from jobs.core.states import JobState
from jobs.engine import EndedHost, WorkerInfo, get_engine

POOL_FIELDS = {
    *("name", "paused", "slots", "slots_actual", "workers", "max_running", "max_pending"),
    *("ready", "scheduled", "retry_wait", "leased", "dead"),
    *("oldest_ready_age_seconds", "predicted_wait_seconds", "throughput_per_second"),
}


@pytest.fixture
def worker():
    """A worker that said it is alive."""
    info = WorkerInfo(
        id="app-1.7.1",
        host="app-1.7",
        hostname="app-1\x1b[31m",
        pid=4711,
        pools={"default": 10},
        started_at_ms=1_700_000_000_000,
        state="consuming",
        running=1,
        rss=64 * 2**20,
        version="1.0",
        current=[{"id": "job-1", "type": "commands.greet", "started_at": "2026-01-01T00:00:00.000Z"}],
    )
    get_engine().workers.beat([info], ttl_ms=60_000)
    return info


@pytest.fixture
def host(worker):
    """Its host."""
    info = msgspec.structs.replace(worker, id=worker.host, pools={}, current=[])
    get_engine().workers.beat([info], ttl_ms=60_000)
    return info


def test_pools_stand_in_a_list(cli):
    api.enqueue("commands.greet", {}, pool="critical")

    result = cli("pools", "list", "--json")

    [pool] = result.json["items"]
    assert pool.keys() == POOL_FIELDS
    assert (pool["name"], pool["ready"], result.json["next_cursor"]) == ("critical", 1, None)
    assert cli("pools", "list").out.splitlines()[1].split("\t")[:3] == ["critical", "on", "1"]


def test_one_pool_is_shown(cli):
    api.enqueue("commands.greet", {}, pool="critical")

    assert cli("pools", "show", "critical", "--json").json.keys() == POOL_FIELDS
    assert "10 per worker process" in cli("pools", "show", "critical").out


@pytest.mark.parametrize("verb", ["show", "pause", "resume"])
def test_a_pool_that_is_not_there_exits_3(cli, verb):
    result = cli("pools", verb, "nowhere", "--json")

    assert (result.code, result.error["code"]) == (3, "pool_not_found")


def test_a_pool_that_was_meant_is_named(cli):
    api.enqueue("commands.greet", {}, pool="critical")

    assert cli("pools", "show", "critcal", "--json").error["fix"] == "Did you mean 'critical'?"
    assert "pools list" in cli("pools", "show", "nowhere", "--json").error["fix"]


def test_a_pause_says_who_and_why_and_until_when(cli):
    api.enqueue("commands.greet", {})

    result = cli("pools", "pause", "default", "--reason", "disk move", "--for", "1h", "--json")

    paused = result.json["paused"]
    assert (paused["by"], paused["reason"]) == (getpass.getuser(), "disk move")
    assert paused["until"] > paused["at"]
    assert f"paused by {getpass.getuser()}" in cli("pools", "show", "default").out


def test_a_pause_ends(cli):
    api.enqueue("commands.greet", {})
    cli("pools", "pause", "default")

    assert cli("pools", "resume", "default", "--json").json["paused"] is None


@pytest.mark.django_db
def test_slots_are_set_per_worker_process(cli):
    api.enqueue("commands.greet", {})

    result = cli("pools", "scale", "default", "25", "--json")

    assert (result.code, result.json["slots"]) == (0, 25)


@pytest.mark.django_db
def test_a_pool_may_have_no_slots(cli):
    assert cli("pools", "scale", "default", "0", "--json").json["slots"] == 0


@pytest.mark.parametrize(
    "given",
    [
        ("scale", "default", "-1"),
        ("scale", "default", "many"),
        ("scale", "default"),
        ("pause", "default", "--for", "x"),
        ("pause",),
    ],
)
def test_a_wrong_command_line_exits_2(cli, given):
    assert cli("pools", *given).code == 2


def test_the_status_is_the_whole_system(cli, worker, dead):
    dead()
    api.enqueue("commands.greet", {}, delay=60)

    status = cli("scheduler", "status", "--json").json

    assert status.keys() == {"paused", "hosts", "workers", "server_time", "states", "pools"}
    assert (status["paused"], status["workers"]) == (None, 1)
    assert status["states"].keys() == {state.value for state in JobState}
    assert (status["states"]["dead"], status["states"]["scheduled"]) == (1, 1)
    assert [pool["name"] for pool in status["pools"]] == ["default"]


def test_the_status_is_text_too(cli):
    api.enqueue("commands.greet", {})

    out = cli("scheduler", "status").out

    assert out.splitlines()[0].split() == ["state", "on"]
    assert "retry_wait" in out
    assert "default" in out


def test_workers_stand_in_a_list(cli, worker):
    result = cli("workers", "list", "--json")

    [shown] = result.json["items"]
    assert (shown["id"], shown["alive"], shown["pools"]) == (worker.id, True, {"default": 10})


def test_hosts_that_have_ended_stand_in_a_list_with_why(cli):
    now_ms = int(time.time() * 1000)
    assert cli("workers", "list", "--ended", "--json").json["items"] == []
    gone = EndedHost(
        id="h", hostname="box", pid=7, version="r1", started_at_ms=1, ended_at_ms=now_ms, why="stopped by SIGTERM"
    )
    get_engine().workers.leave(["h"], gone)

    [shown] = cli("workers", "list", "--ended", "--json").json["items"]
    assert (shown["id"], shown["why"], shown["handed_back"]) == ("h", "stopped by SIGTERM", 0)
    assert "stopped by SIGTERM" in cli("workers", "list", "--ended").out


def test_a_hostile_host_name_is_only_text(cli, worker):
    out = cli("workers", "list").out + cli("workers", "show", worker.id).out

    assert "\x1b" not in out
    assert "app-1\\x1b[31m" in out


def test_one_worker_is_shown_with_its_jobs(cli, worker):
    out = cli("workers", "show", worker.id).out

    assert "64 MB" in out
    assert "job-1" in out
    assert cli("workers", "show", worker.id, "--json").json["pid"] == 4711


@pytest.mark.parametrize("verb", ["drain", "stop"])
def test_a_worker_is_told_at_its_next_heartbeat(cli, worker, verb):
    result = cli("workers", verb, worker.id, "--json")

    assert (result.code, result.json["command"]) == (0, verb)
    assert get_engine().workers.beat([worker], ttl_ms=60_000).commands == {worker.id: [verb]}


@pytest.mark.django_db
def test_a_host_is_paused_with_who_why_and_until_when_and_resumed(cli, host, worker):
    shown = cli("workers", "pause", host.id, "--reason", "disk is full", "--for", "1h", "--json").json

    assert (shown["id"], shown["paused"]["by"], shown["paused"]["reason"]) == (
        host.id,
        getpass.getuser(),
        "disk is full",
    )
    assert shown["paused"]["until"] > shown["paused"]["at"]
    listed = cli("workers", "list", "--json").json["items"]
    assert [one["paused"] for one in listed] == [shown["paused"]] * 2
    assert cli("workers", "list").out.count(shown["paused"]["until"]) == 2
    assert f"paused by {getpass.getuser()}" in cli("workers", "show", worker.id).out

    assert cli("workers", "resume", host.id, "--json").json["paused"] is None
    assert cli("workers", "resume", host.id).code == 0, "it was not paused, which is no error"


def test_where_all_hosts_are_paused_the_lists_do_not_say_that_all_is_well(cli, host, worker):
    api.enqueue("commands.greet", {}, pool="default")
    cli("workers", "pause", host.id)

    assert cli("pools", "list").out.splitlines()[1].split("\t")[:2] == ["default", "hosts paused"]
    assert cli("scheduler", "status").out.count("hosts paused") == 2  # the whole, and the pool

    cli("workers", "resume", host.id)
    assert "hosts paused" not in cli("pools", "list").out + cli("scheduler", "status").out


def test_one_worker_of_a_host_cannot_be_paused(cli, host, worker):
    result = cli("workers", "pause", worker.id, "--json")

    assert (result.error["code"], result.error["fix"]) == ("wrong_state", f"Pause its host: {host.id}")
    assert result.code != 0


@pytest.mark.parametrize("verb", ["show", "drain", "stop", "pause", "resume"])
def test_a_worker_that_is_not_there_exits_3(cli, verb):
    assert cli("workers", verb, "nowhere", "--json").error["code"] == "worker_not_found"
    assert cli("workers", verb, "nowhere").code == 3


def test_no_worker_is_an_empty_list(cli):
    assert cli("workers", "list", "--json").json["items"] == []


@pytest.mark.django_db
def test_limits_are_set_shown_and_taken_away_again(cli):
    api.enqueue("commands.greet", {})

    both = cli("pools", "limit", "default", "--max-running", "5", "--max-pending", "100", "--json")
    one = cli("pools", "limit", "default", "--max-running", "none", "--json")

    assert (both.code, both.json["max_running"], both.json["max_pending"]) == (0, 5, 100)
    assert (one.code, one.json["max_running"], one.json["max_pending"]) == (0, None, 100)


@pytest.mark.django_db
@pytest.mark.parametrize("arguments", [[], ["--max-running", "-1"], ["--max-running", "few"], ["--max-pending", "1.5"]])
def test_a_limit_that_is_none_is_refused(cli, arguments):
    assert cli("pools", "limit", "default", *arguments).code == 2


@pytest.mark.django_db
def test_a_pool_that_was_none_is_said_to_be_new(cli):
    api.enqueue("commands.greet", {})
    assert "no pool" not in cli("pools", "scale", "default", "3").err

    for verb in (("scale", "defalt", "3"), ("limit", "critcal", "--max-running", "1"), ("autoscale", "spare", "--off")):
        assert f"There was no pool {verb[1]!r}; now there is." in cli("pools", *verb).err
        assert "no pool" not in cli("pools", *verb).err


@pytest.mark.django_db
def test_a_full_pool_refuses_new_jobs_with_4(cli):
    cli("pools", "limit", "default", "--max-pending", "0")

    result = cli("enqueue", "commands.greet", "--json")

    assert (result.code, result.error["code"]) == (4, "pool_full")


# Holding everything, and types ---------------------------------------------------------------------------------------


def test_everything_is_paused_and_resumed(cli):
    api.enqueue("commands.greet", {})

    paused = cli("scheduler", "pause", "--reason", "database move", "--for", "1h", "--json").json["paused"]
    assert (paused["by"], paused["reason"]) == (getpass.getuser(), "database move")
    assert paused["until"] > paused["at"]
    assert "database move" in cli("scheduler", "status").out

    assert cli("scheduler", "resume", "--json").json["paused"] is None


def test_a_type_is_paused_and_resumed(cli):
    paused = cli("types", "pause", "commands.greet", "--reason", "wrong words", "--json").json
    assert (paused["name"], paused["paused"]["reason"]) == ("commands.greet", "wrong words")
    listed = {item["name"]: item["paused"] for item in cli("types", "list", "--json").json["items"]}
    assert listed["commands.greet"]
    assert listed["commands.login"] is None
    assert "paused by" in cli("types", "list").out

    assert cli("types", "resume", "commands.greet", "--json").json["paused"] is None


def test_a_pause_longer_than_the_calendar_is_refused(cli):
    assert cli("scheduler", "pause", "--for", "99999999d").code == 2


# Sizing by a machine -------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_pool_is_sized_by_a_rule_that_is_shown_with_its_decisions(cli):
    rule = ("--min", "2", "--max", "8", "--target-wait", "500ms", "--tolerance", "100ms", "--cooldown", "10s")

    shown = cli("pools", "autoscale", "media", "--on", *rule, "--json").json
    assert shown["autoscale"] == {
        "min_slots": 2,
        "max_slots": 8,
        "target_wait_seconds": 0.5,
        "tolerance_seconds": 0.1,
        "cooldown_seconds": 10.0,
        "dry_run": False,
    }
    assert shown["decisions"] == []
    assert "2 to 8 slots" in cli("pools", "show", "media").out

    refused = cli("pools", "scale", "media", "4", "--json")
    assert (refused.code, refused.error["code"]) == (4, "wrong_state")
    assert cli("pools", "autoscale", "media", "--off", "--json").json["autoscale"] is None
    assert cli("pools", "scale", "media", "4").code == 0


@pytest.mark.django_db
def test_a_rule_that_makes_no_sense_is_refused(cli):
    assert cli("pools", "autoscale", "media", "--on", "--min", "9", "--max", "3").code == 2


# Many jobs -----------------------------------------------------------------------------------------------------------


def test_all_jobs_that_match_are_cancelled_and_no_other(cli):
    for _ in range(3):
        api.enqueue("commands.greet", {}, tags=["nightly"])
    other = api.enqueue("commands.greet", {}).id

    looked = cli("jobs", "cancel", "--all", "--tag", "nightly", "--dry-run", "--json").json
    assert (looked["dry_run"], looked["count"], len(looked["sample"])) == (True, 3, 3)

    done = cli("jobs", "cancel", "--all", "--tag", "nightly", "--yes", "--json").json
    assert (done["count"], done["done"], done["failed"]) == (3, 3, 0)
    assert api.get_job(other).state == JobState.READY


@pytest.mark.parametrize(
    "given",
    [
        ("cancel",),
        ("cancel", "x", "--all"),
        ("cancel", "--tag", "x"),
        ("cancel", "--all"),
        ("cancel", "x", "--dry-run"),
    ],
)
def test_a_cancel_that_does_not_say_which_jobs_is_refused(cli, given):
    assert cli("jobs", *given).code == 2


def test_what_was_not_written_into_the_audit_log_is_said(cli):
    api.enqueue("commands.greet", {})

    result = cli("pools", "pause", "default")

    assert result.code == 0
    assert "not written into the audit log" in result.err


@pytest.mark.django_db
def test_a_command_is_written_into_the_audit_log(cli, monkeypatch):
    monkeypatch.setattr("jobs.management.base.connections.close_all", lambda: None)  # this process goes on
    api.enqueue("commands.greet", {})

    assert cli("pools", "pause", "default", "--reason", "why").err == ""

    [entry] = api.audit.list().items
    assert (entry.who, entry.source, entry.action, entry.target) == (
        getpass.getuser(),
        "command",
        "pool.pause",
        "default",
    )
