"""``enqueue``: every option, every refusal."""

import json
import signal
from datetime import timedelta

import pytest
from django.utils import timezone

from jobs import api
from jobs.core.states import JobState


def test_a_pipe_gets_the_bare_id(cli):
    result = cli("enqueue", "commands.greet")

    assert (result.code, result.err) == (0, "")
    assert api.get_job(result.out.strip()).payload == {}


def test_json_has_the_first_five_fields_and_existing(cli):
    result = cli("enqueue", "commands.greet", "--json")

    job = api.get_job(result.json["id"])
    assert result.json == {
        "id": job.id,
        "type": "commands.greet",
        "pool": "default",
        "state": "ready",
        "run_at": job.as_dict()["run_at"],
        "existing": False,
    }


def test_options_reach_the_job(cli):
    result = cli(
        *("enqueue", "commands.greet", "--payload", '{"name": "Bo"}', "--pool", "critical", "--priority", "7"),
        *("--max-retries", "5", "--timeout", "2m", "--tag", "a", "--tag", "b", "--meta", "team=x=y", "--id", "order 7"),
    )

    job = api.get_job("order 7")
    assert result.code == 0
    assert (job.payload, job.pool, job.priority) == ({"name": "Bo"}, "critical", 7)
    assert (job.max_retries, job.timeout, job.tags, job.meta) == (5, 120.0, ["a", "b"], {"team": "x=y"})


@pytest.mark.parametrize(("written", "seconds"), [("90s", 90), ("5m", 300), ("2h", 7200)])
def test_a_delay_is_counted_from_now(cli, written, seconds):
    result = cli("enqueue", "commands.greet", "--delay", written, "--json")

    job = api.get_job(result.json["id"])
    assert job.state is JobState.SCHEDULED
    assert (job.run_at - job.created_at) == timedelta(seconds=seconds)


def test_a_job_can_wait_for_a_moment(cli):
    at = (timezone.now() + timedelta(hours=1)).replace(microsecond=0)

    result = cli("enqueue", "commands.greet", "--at", at.isoformat(), "--json")

    assert api.get_job(result.json["id"]).run_at == at


def test_a_moment_in_the_past_means_now(cli):
    assert cli("enqueue", "commands.greet", "--at", "2001-01-01T00:00:00Z", "--json").json["state"] == "ready"


@pytest.mark.parametrize(
    "given",
    [
        ("-",),
        ("-", "--tag", "last"),
        ("--tag", "first", "-"),
        ("--payload", "-"),
        ("--payload-file", "-"),
    ],
)
def test_a_dash_reads_the_payload_from_standard_input(cli, given):
    result = cli("enqueue", "commands.greet", *given, stdin=b'{"name": "Cy"}')

    assert api.get_job(result.out.strip()).payload == {"name": "Cy"}


def test_a_payload_can_come_from_a_file(cli, tmp_path):
    file = tmp_path / "payload.json"
    file.write_text('{"name": "Di"}')

    result = cli("enqueue", "commands.greet", "--payload-file", str(file))

    assert api.get_job(result.out.strip()).payload == {"name": "Di"}


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ("{", "is not JSON"),
        ("[1]", "array, not an object"),
        ('"x"', "string, not an object"),
        ("null", "literal, not an object"),
        ("1", "number, not an object"),
        ('{"name": NaN}', "NaN"),
        ('{"name": ' + "[" * 10_000 + "]" * 10_000 + "}", "nested too deeply"),
        ('{"name": "\\ud800"}', ""),
        ('{"nam": "x"}', "nam"),
        ('{"name": 1}', "name"),
    ],
)
def test_a_payload_that_cannot_be_run_is_a_usage_error(cli, payload, said):
    result = cli("enqueue", "commands.greet", "--payload", payload, "--json")

    assert result.code == 2
    assert result.out == ""
    assert result.error["code"] == "payload_invalid"
    assert said in result.error["message"]
    assert len(result.err) < 2_000


def test_bytes_that_are_no_text_are_refused(cli):
    assert cli("enqueue", "commands.greet", "-", stdin=b'{"name": "\xff"}').code == 2


def test_a_payload_over_the_limit_is_refused(cli):
    result = cli("enqueue", "commands.greet", "-", "--json", stdin=json.dumps({"name": "x" * 300_000}).encode())

    assert (result.code, result.error["code"]) == (2, "payload_too_large")


def test_a_file_far_over_the_limit_is_not_even_parsed(cli, monkeypatch):
    monkeypatch.setattr("jobs.management.arguments.MAX_INPUT_BYTES", 100)

    result = cli("enqueue", "commands.greet", "-", "--json", stdin=b" " * 101)

    assert (result.code, result.error["code"]) == (2, "payload_too_large")


@pytest.mark.parametrize("path", ["/nowhere/payload.json", "/", "nul\0"])
def test_a_file_that_cannot_be_read_is_named(cli, path):
    result = cli("enqueue", "commands.greet", "--payload-file", path)

    assert result.code == 2
    assert "cannot be read" in result.err


@pytest.mark.parametrize(
    "given",
    [
        ("--payload", "{}", "--payload-file", "x"),
        ("--payload", "{}", "-"),
        ("--payload",),
        ("--payload-file",),
        ("--delay", "5m", "--at", "2026-01-01T00:00:00Z"),
        ("--delay=-5s",),
        ("--delay", "soon"),
        ("--at", "tomorrow"),
        ("--meta", "no-equals-sign"),
        ("--count", "0"),
        ("--count", "many"),
        ("--count", "2", "--id", "x"),
        ("--count", "2", "--unique-key", "x"),
        ("--priority", "101"),
        ("--priority", "high"),
        ("--pool", "no spaces"),
        ("--pool", ""),
        ("--max-retries=-1",),
        ("--id", ""),
        ("--id", "new\nline"),
        ("--tag", "\x00"),
        ("--wait-timeout", "5s"),
    ],
)
def test_an_option_that_cannot_be_used_exits_2_and_enqueues_nothing(cli, given):
    result = cli("enqueue", "commands.greet", *given)

    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Error: ")
    assert api.count_matching(api.JobFilter()) == 0


def test_an_unknown_type_names_the_nearest(cli):
    result = cli("enqueue", "commands.great")

    assert result.code == 2
    assert "commands.greet" in result.err


def test_a_type_that_only_workers_know_can_be_allowed(cli):
    result = cli("enqueue", "crm.push", "--allow-unknown", "--payload", '{"any": ["thing"]}', "--json")

    assert result.code == 0
    assert api.get_job(result.json["id"]).type == "crm.push"


def test_an_id_that_is_taken_exits_4(cli):
    cli("enqueue", "commands.greet", "--id", "order 7")

    result = cli("enqueue", "commands.greet", "--id", "order 7", "--json")

    assert (result.code, result.error["code"]) == (4, "duplicate_job")


def test_a_unique_key_answers_the_job_there_is(cli):
    first = cli("enqueue", "commands.greet", "--unique-key", "customer:42", "--json")

    second = cli("enqueue", "commands.greet", "--unique-key", "customer:42", "--json")

    assert second.code == 0
    assert second.json == first.json | {"existing": True}


def test_many_are_enqueued_in_batches(cli):
    result = cli("enqueue", "commands.greet", "--count", "2500", "--json")

    assert result.json["count"] == 2500
    assert len(result.json["ids"]) == 1000
    assert api.count_matching(api.JobFilter()) == 2500


def test_many_ids_are_lines_in_a_pipe(cli):
    assert len(cli("enqueue", "commands.greet", "--count", "3").out.split()) == 3


def test_of_many_that_stop_half_way_the_rest_is_told(cli, monkeypatch):
    from jobs.exceptions import StoreUnavailable

    real, calls = api.enqueue_many, []

    def fails_later(*args, **options):
        calls.append(args)
        if len(calls) > 2:
            raise StoreUnavailable("It went away", fix="Start it.")
        return real(*args, **options)

    monkeypatch.setattr(api, "enqueue_many", fails_later)

    result = cli("enqueue", "commands.greet", "--count", "3000", "--json")

    assert (result.code, result.json["count"]) == (6, 2000)
    assert "2,000 of 3,000" in result.error["fix"]


def test_waiting_shows_the_whole_job_that_ended(cli, succeed, monkeypatch):
    real = api.wait
    monkeypatch.setattr(api, "wait", lambda id, timeout: (succeed(id, "Hello"), real(id, timeout))[1])

    result = cli("enqueue", "commands.greet", "--wait", "--json")

    assert result.code == 0
    assert (result.json["state"], result.json["result"], result.json["existing"]) == ("succeeded", "Hello", False)


def test_waiting_for_a_job_that_dies_exits_1(cli, bury, monkeypatch):
    real = api.wait
    monkeypatch.setattr(api, "wait", lambda id, timeout: (bury(id), real(id, timeout))[1])

    result = cli("enqueue", "commands.greet", "--wait", "--json")

    assert (result.code, result.json["state"], result.error["code"]) == (1, "dead", "job_dead")


def test_waiting_no_longer_than_asked_exits_6(cli):
    result = cli("enqueue", "commands.greet", "--wait", "--wait-timeout", "50ms", "--json")

    assert (result.code, result.json["state"], result.error["code"]) == (6, "ready", "timed_out")


def test_waiting_for_many_of_which_some_die_exits_1(cli, bury, succeed, monkeypatch):
    real, ends = api.wait, iter([succeed, bury])

    def ended(id, timeout):
        next(ends)(id)
        return real(id, timeout)

    monkeypatch.setattr(api, "wait", ended)

    result = cli("enqueue", "commands.greet", "--count", "2", "--wait", "--json")

    assert (result.code, result.json["states"]) == (1, {"succeeded": 1, "dead": 1})
    assert "1 dead, 1 succeeded" in result.error["message"]


def test_an_interrupt_finishes_the_batch_and_tells_what_is_enqueued(cli, monkeypatch):
    real, calls = api.enqueue_many, []

    def interrupted(*args, **options):
        calls.append(args)
        if len(calls) > 1:
            signal.raise_signal(signal.SIGINT)
        return real(*args, **options)

    monkeypatch.setattr(api, "enqueue_many", interrupted)

    result = cli("enqueue", "commands.greet", "--count", "3000", "--json")

    assert (result.code, result.json["count"], result.error["code"]) == (130, 2000, "interrupted")


def test_waiting_for_many_counts_how_they_ended(cli):
    result = cli("enqueue", "commands.greet", "--count", "3", "--wait", "--wait-timeout", "10ms", "--json")

    assert result.code == 6
    assert result.json["states"] == {"ready": 3}
