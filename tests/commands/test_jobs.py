"""``jobs``: lists and single jobs."""

import signal

import pytest

from jobs import api
from jobs.core.job import Route
from jobs.core.states import JobState
from jobs.store.keys import partition_keys


def enqueued(**options):
    return api.enqueue("commands.greet", options.pop("payload", {}), **options).id


def test_a_list_holds_whole_jobs_and_a_cursor(cli):
    id = enqueued()

    result = cli("jobs", "list", "--json")

    assert result.json == {"items": [api.get_job(id).as_dict()], "next_cursor": None}


def test_an_empty_list_is_empty(cli):
    assert cli("jobs", "list", "--json").json == {"items": [], "next_cursor": None}
    assert cli("jobs", "list") == (0, "", "")


def test_pages_follow_each_other(cli):
    ids = {enqueued() for _ in range(5)}

    first = cli("jobs", "list", "--limit", "3", "--json").json
    second = cli("jobs", "list", "--limit", "3", "--cursor", first["next_cursor"], "--json").json

    assert {job["id"] for job in first["items"] + second["items"]} == ids


def test_a_limit_is_clamped(cli):
    enqueued()

    assert len(cli("jobs", "list", "--limit", "1000000000", "--json").json["items"]) == 1


@pytest.mark.parametrize("given", [("--limit", "0"), ("--limit", "x"), ("--cursor", "x"), ("--since", "x")])
def test_a_list_that_cannot_be_made_exits_2(cli, given):
    assert cli("jobs", "list", *given).code == 2


def test_filters_choose(cli, dead):
    died = dead("smtp said no", tags=["nightly"])
    waits = enqueued(delay=60, pool="critical", tags=["nightly"])
    ready = enqueued(pool="critical")

    def listed(*filters):
        return {job["id"] for job in cli("jobs", "list", *filters, "--json").json["items"]}

    assert listed("--state", "dead") == {died}
    assert listed("--state", "dead", "--state", "scheduled") == {died, waits}
    assert listed("--pool", "critical") == {waits, ready}
    assert listed("--tag", "nightly") == {died, waits}
    assert listed("--search", "SMTP said") == {died}
    assert listed("--since", "1h") == {died, waits, ready}
    assert listed("--since", "2999-01-01T00:00:00Z") == set()
    assert listed("--type", "commands.greet", "--tag", "nightly", "--pool", "default") == {died}
    assert listed("--pool", "nowhere") == set()


def test_running_is_another_word_for_leased(cli, lease):
    held = lease(enqueued())

    assert [job["id"] for job in cli("jobs", "list", "--state", "running", "--json").json["items"]] == [held.id]


def test_a_state_that_is_none_names_the_nearest(cli):
    result = cli("jobs", "list", "--state", "retrywait")

    assert result.code == 2
    assert "Did you mean 'retry_wait'?" in result.err


def test_in_a_pipe_a_list_is_lines(cli):
    id = enqueued()

    lines = cli("jobs", "list").out.splitlines()

    assert lines[0].split("\t")[:4] == ["id", "type", "pool", "state"]
    assert lines[1].split("\t")[:4] == [id, "commands.greet", "default", "ready"]


def test_one_job_is_an_object_and_several_are_items(cli):
    first, second = enqueued(), enqueued()

    assert cli("jobs", "show", first, "--json").json == whole(first)
    assert cli("jobs", "show", first, second, "--json").json == {"items": [whole(first), whole(second)]}


def whole(id):
    """The job, and why it does not run."""
    reason = api.explain(id)
    return api.get_job(id).as_dict() | {"reason": reason.as_dict() if reason else None}


def test_a_waiting_job_is_shown_with_the_reason_and_a_running_one_without(cli, lease):
    id = enqueued()

    assert cli("jobs", "show", id, "--json").json["reason"]["code"] == "no_worker"
    assert "No worker serves pool default." in cli("jobs", "show", id).out
    lease(id)
    assert cli("jobs", "show", id, "--json").json["reason"] is None


@pytest.mark.parametrize("command", [("jobs", "list", "--json"), ("jobs", "show"), ("jobs", "show", "--json")])
def test_what_a_type_redacts_is_masked(cli, command):
    id = api.enqueue("commands.login", {"user": "ana", "password": "s3cret"}).id

    result = cli(*command, *([id] if "show" in command else []))

    assert "ana" in result.out
    assert "s3cret" not in result.out


def test_what_a_type_redacts_can_be_revealed_and_that_is_on_record(cli, bury, caplog):
    id = api.enqueue("commands.login", {"user": "ana", "password": "s3cret"}).id

    assert cli("jobs", "show", id, "--reveal", "--json").json["payload"]["password"] == "s3cret"
    assert "s3cret" in cli("jobs", "show", id, "--reveal").out
    bury(id)
    assert "s3cret" not in cli("dlq", "show", id).out
    assert "s3cret" in cli("dlq", "show", id, "--reveal").out
    told = [
        record.getMessage() for record in caplog.records if record.name == "jobs.audit" and record.levelname == "INFO"
    ]
    assert [message.partition(" by ")[0] for message in told] == [f"job.reveal {id}"] * 3


def test_the_text_of_a_job_tells_what_went_wrong(cli, dead):
    id = dead("smtp said no")

    text = cli("jobs", "show", id).out

    assert "state" in text
    assert "dead" in text
    assert "OSError: smtp said no" in text
    assert "Traceback:\n  in greet" in text


def test_hostile_jobs_cannot_speak_to_the_terminal(cli, dead):
    id = dead("\x1b]0;owned\x07\x1b[2J", type="Bad\x1bError")
    enqueued(payload={"name": "\x9b31m\u202e"})

    out = cli("jobs", "show", id).out + cli("jobs", "list").out + cli("dlq", "list").out

    assert not set(out) & set("\x1b\x07\x9b\u202e")


@pytest.mark.parametrize("junk", [b"", b"\xff\x00junk", b"\x1b[2J" * 1000])
@pytest.mark.parametrize("kind", ["bodies", "states"])
def test_stored_bytes_that_are_broken_break_no_list(cli, store, namespace, junk, kind):
    broken, whole = enqueued(), enqueued()
    job = api.get_job(broken)
    keys = partition_keys(namespace, Route(job.pool, job.queue_version, job.partition))
    store.client.hset(getattr(keys, kind), broken, junk)

    for command in (("list",), ("show", broken), ("list", "--search", "x"), ("list", "--json"), ("cancel", broken)):
        result = cli("jobs", *command)
        assert result.code in {0, 3, 4}, result
        assert not set(result.out + result.err) & set("\x1b\x00")
    assert cli("jobs", "show", whole).code == 0


@pytest.mark.parametrize("verb", ["show", "cancel", "retry", "run-now", "delete", "wait"])
def test_a_job_that_is_not_there_exits_3(cli, verb):
    result = cli("jobs", verb, "nowhere", "--json")

    assert (result.code, result.out, result.error["code"]) == (3, "", "job_not_found")


def test_several_jobs_that_are_not_there_exit_3_too(cli):
    result = cli("jobs", "show", "here", "there", "--json")

    assert result.code == 3
    assert [item["error"]["code"] for item in result.json["items"]] == ["job_not_found"] * 2


def test_what_is_partly_done_exits_6_and_tells_both(cli):
    id = enqueued()

    result = cli("jobs", "cancel", id, "nowhere", "--json")

    done, refused = result.json["items"]
    assert result.code == 6
    assert (done["id"], done["state"]) == (id, "cancelled")
    assert (refused["id"], refused["error"]["code"]) == ("nowhere", "job_not_found")


def test_an_interrupt_finishes_the_job_in_hand_and_tells_what_is_done(cli, monkeypatch):
    ids, real = [enqueued(), enqueued(), enqueued()], api.cancel

    def cancel(id):
        if id == ids[1]:
            signal.raise_signal(signal.SIGINT)
        return real(id)

    monkeypatch.setattr(api, "cancel", cancel)

    result = cli("jobs", "cancel", *ids, "--json")

    assert (result.code, result.error["code"]) == (130, "interrupted")
    assert [item.get("state") for item in result.json["items"]] == ["cancelled", "cancelled", None]
    assert api.get_job(ids[2]).state is JobState.READY


def test_an_interrupt_while_waiting_tells_which_job_goes_on(cli, monkeypatch):
    def interrupted(id, timeout):
        raise KeyboardInterrupt

    monkeypatch.setattr(api, "wait", interrupted)

    result = cli("enqueue", "commands.greet", "--id", "order 7", "--wait")

    assert (result.code, result.out) == (130, "")
    assert "order 7 goes on" in result.err


def test_an_id_given_twice_is_one_id(cli):
    id = enqueued()

    assert cli("jobs", "cancel", id, id, "--json").json["id"] == id


def test_a_waiting_job_is_cancelled_at_once(cli):
    id = enqueued()

    assert cli("jobs", "cancel", id).out == f"{id}\tcancelled\n"


def test_a_running_job_is_asked_to_stop(cli, lease):
    id = enqueued()
    lease(id)

    result = cli("jobs", "cancel", id)

    assert result.out == f"{id}\tleased (cancel requested)\n"
    assert api.get_job(id).cancel_requested


def test_an_ended_job_cannot_be_cancelled(cli, dead):
    result = cli("jobs", "cancel", dead(), "--json")

    assert (result.code, result.error["code"]) == (4, "wrong_state")


def test_a_scheduled_job_can_run_now(cli):
    id = enqueued(delay=3600)

    assert cli("jobs", "run-now", id, "--json").json["state"] == "ready"


def test_a_ready_job_cannot_run_more_now(cli):
    assert cli("jobs", "run-now", enqueued()).code == 4


def test_a_dead_job_can_be_retried(cli, dead):
    assert cli("jobs", "retry", dead(), "--json").json["state"] == "ready"


def test_a_waiting_job_gets_another_priority(cli):
    id = enqueued()

    assert cli("jobs", "prioritize", id, "--to", "40", "--json").json["priority"] == 40
    assert cli("jobs", "prioritize", id, "--to", "101").code == 2


def test_waiting_jobs_are_moved_by_id_and_all_that_match(cli):
    first, second = enqueued(pool="a"), enqueued(pool="a")
    enqueued(pool="b")

    moved = cli("jobs", "move", first, "--to", "b", "--json").json
    assert (moved["pool"], moved["meta"]) == ("b", {"moved_from": first})
    assert cli("jobs", "move", "--all", "--pool", "a", "--to", "b", "--dry-run", "--json").json["count"] == 1
    done = cli("jobs", "move", "--all", "--pool", "a", "--to", "b", "--yes", "--json").json
    assert (done["state"], done["done"]) == ("done", 1)
    assert cli("jobs", "show", second, "--json").json["result"]["pool"] == "b"


def test_an_ended_job_can_be_deleted(cli, dead):
    id = dead()

    assert cli("jobs", "delete", id, "--json").json == {"id": id, "deleted": True}
    assert cli("jobs", "show", id).code == 3


def test_a_live_job_cannot_be_deleted(cli):
    id = enqueued()

    assert cli("jobs", "delete", id).code == 4
    assert api.get_job(id).state is JobState.READY


def test_waiting_tells_how_the_job_ended(cli, succeed, dead):
    good = enqueued()
    succeed(good, {"sent": 1})

    assert cli("jobs", "wait", good, "--json").json["result"] == {"sent": 1}
    assert cli("jobs", "wait", dead()).code == 1


def test_waiting_ends_with_6_when_the_time_is_over(cli):
    result = cli("jobs", "wait", enqueued(), "--timeout", "50ms", "--json")

    assert (result.code, result.json["state"], result.error["code"]) == (6, "ready", "timed_out")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "VERB"),
        (("lst",), "Did you mean 'list'?"),
        (("list", "--pol", "x"), "Did you mean '--pool'?"),
        (("list", "--sta", "dead"), "--sta"),
        (("show",), "ID"),
        (("wait", "a", "b"), "b"),
    ],
)
def test_a_wrong_command_line_exits_2_with_one_paragraph(cli, given, said):
    result = cli("jobs", *given)

    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1
    assert "--help" in result.err


def test_a_wrong_command_line_is_json_too(cli):
    assert cli("jobs", "lst", "--json").error["code"] == "usage"


def test_common_options_stand_before_or_after_the_verb(cli):
    assert cli("jobs", "--json", "list").json == cli("jobs", "list", "--json").json


@pytest.mark.parametrize("command", ["enqueue", "jobs", "dlq", "pools", "workers", "scheduler", "doctor"])
def test_help_has_examples(cli, command):
    result = cli(command, "--help")

    assert (result.code, result.err) == (0, "")
    assert f"examples:\n  manage.py {command}" in result.out
