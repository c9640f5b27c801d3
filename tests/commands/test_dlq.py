"""``dlq``: looking through what died, and making it live again or go for good."""

import signal
import time

import pytest

from jobs import api
from jobs.core.states import JobState
from jobs.engine import WorkerInfo, get_engine
from jobs.exceptions import StoreUnavailable


def state(id):
    return api.get_job(id).state


def test_the_list_holds_dead_jobs_only_newest_first(cli, dead):
    first, second = dead(), dead()
    api.enqueue("commands.greet", {})

    result = cli("dlq", "list", "--json")

    assert [job["id"] for job in result.json["items"]] == [second, first]
    assert result.json["next_cursor"] is None


def test_the_list_takes_filters_and_cursors(cli, dead):
    ids = [dead("smtp"), dead("smtp"), dead("http")]

    first = cli("dlq", "list", "--search", "smtp", "--limit", "1", "--json").json
    second = cli("dlq", "list", "--search", "smtp", "--cursor", first["next_cursor"], "--json").json

    assert [job["id"] for job in first["items"] + second["items"]] == [ids[1], ids[0]]


def test_since_deploy_is_since_the_newest_version_that_workers_told_of(cli, dead):
    dead()
    unknown = cli("dlq", "list", "--since", "deploy", "--json")
    time.sleep(0.002)  # a deploy is known by the millisecond
    engine = get_engine()
    host = WorkerInfo(id="a", host="a", hostname="a", pid=1, pools={}, started_at_ms=0, state="", version="9f3c2ab")
    engine.workers.beat([host], ttl_ms=60_000)
    new = dead()

    assert unknown.code == 2
    assert "No deploy is known" in unknown.error["message"]
    assert "Start a worker host" in unknown.error["fix"]
    assert [job["id"] for job in cli("dlq", "list", "--since", "deploy", "--json").json["items"]] == [new]
    assert cli("dlq", "resubmit", "--all", "--since", "deploy", "--dry-run", "--json").json["count"] == 1
    assert cli("jobs", "list", "--older", "deploy", "--json").code == 2


def test_a_type_is_a_name_or_a_beginning_and_a_star(cli, dead):
    id = dead()

    assert [job["id"] for job in cli("dlq", "list", "--type", "commands.*", "--json").json["items"]] == [id]
    assert cli("dlq", "list", "--type", "command*s", "--json").code == 2
    assert cli("dlq", "resubmit", "--all", "--type", "mail.*", "--dry-run", "--json").json["count"] == 0


def test_a_dead_job_is_shown(cli, dead):
    id = dead("smtp said no")

    assert cli("dlq", "show", id, "--json").json == api.get_job(id).as_dict()
    assert "smtp said no" in cli("dlq", "show", id).out


def test_what_is_not_dead_is_not_in_the_list(cli):
    id = api.enqueue("commands.greet", {}).id

    result = cli("dlq", "show", id, "--json")

    assert (result.code, result.error["code"]) == (4, "wrong_state")
    assert "is ready, not dead" in result.error["message"]


@pytest.mark.parametrize("verb", ["show", "resubmit", "discard"])
def test_a_job_that_is_not_there_exits_3(cli, verb):
    assert cli("dlq", verb, "nowhere").code == 3


def test_groups_put_one_cause_together(cli, dead):
    dead("user 17 not found")
    sample = dead("user 99 not found")
    dead("timed out", type="TimeoutError")

    result = cli("dlq", "groups", "--json")

    largest, other = result.json["items"]
    assert (largest["count"], largest["error_type"], largest["sample"]) == (2, "OSError", sample)
    assert (other["count"], other["error_type"]) == (1, "TimeoutError")


def test_groups_are_a_table_in_text(cli, dead):
    dead("user 17 not found")

    titles, row = cli("dlq", "groups").out.splitlines()

    assert titles.split("\t")[:2] == ["group", "count"]
    assert row.endswith("OSError: user <n> not found")


def test_groups_of_the_newest_alone_say_so(cli, dead, monkeypatch):
    monkeypatch.setattr("jobs.management.commands.dlq.GROUPED", 2)
    dead()
    assert cli("dlq", "groups").err == ""
    dead(), dead()

    assert cli("dlq", "groups").err == "Only the newest 2 are grouped: there may be more.\n"


def test_what_the_table_of_groups_names_can_be_muted(cli, dead):
    dead("user 17 not found")
    fingerprint = cli("dlq", "groups").out.splitlines()[1].split("\t")[0]

    muted = cli("dlq", "mute", "--group", fingerprint, "--for", "1d", "--reason", "ticket 212").out

    assert "OSError: user <n> not found" in muted
    assert cli("dlq", "groups", "--group", fingerprint).out.splitlines()[1].startswith(fingerprint)


@pytest.mark.parametrize("word", ["0123456789ab", "the mail error", "OSError"])
def test_what_is_the_fingerprint_of_no_dead_job_is_not_muted(cli, dead, word):
    dead()

    result = cli("dlq", "mute", "--group", word, "--for", "1d", "--reason", "ticket 212")

    assert result.code == 3
    assert f"fingerprint {word!r}" in result.err
    assert "dlq groups" in result.err
    assert api.mutes.all() == []


def test_a_mute_gets_a_new_end_though_its_jobs_are_gone(cli, dead):
    id = dead("user 17 not found")
    fingerprint = cli("dlq", "groups").out.splitlines()[1].split("\t")[0]
    cli("dlq", "mute", "--group", fingerprint, "--for", "1h", "--reason", "ticket 212")
    api.resubmit(id)

    longer = cli("dlq", "mute", "--group", fingerprint, "--for", "2d", "--reason", "they need longer", "--json").json

    [mute] = api.mutes.all()
    assert (mute.reason, mute.words) == ("they need longer", "OSError: user <n> not found")
    assert longer["items"][0]["words"] == mute.words


def test_a_dead_job_is_resubmitted_with_its_history(cli, dead):
    id = dead()

    result = cli("dlq", "resubmit", id, "--json")

    assert (result.code, result.json["state"], result.json["resubmissions"]) == (0, "ready", 1)
    assert result.json["attempts"] == api.get_job(id).as_dict()["attempts"] != []


def test_a_payload_can_be_corrected(cli, dead):
    id = dead()

    cli("dlq", "resubmit", id, "--payload", '{"name": "Right"}')

    assert api.get_job(id).payload == {"name": "Right"}


def test_a_wrong_correction_is_refused(cli, dead):
    id = dead()

    result = cli("dlq", "resubmit", id, "--payload", '{"nam": 1}')

    assert (result.code, state(id)) == (2, JobState.DEAD)


@pytest.mark.parametrize("verb", ["resubmit", "discard"])
def test_only_dead_jobs_can_be_decided_over_here(cli, verb):
    id = api.enqueue("commands.greet", {}).id

    assert cli("dlq", verb, id).code == 4
    assert state(id) is JobState.READY


def test_part_of_it_is_told_with_the_reasons(cli, dead):
    id, live = dead(), api.enqueue("commands.greet", {}).id

    result = cli("dlq", "discard", id, live, "--json")

    assert result.code == 6
    assert result.json["items"][0] == {"id": id, "discarded": True}
    assert result.json["items"][1]["error"]["code"] == "wrong_state"


def test_all_that_match_are_resubmitted(cli, dead):
    matching = [dead("smtp") for _ in range(3)]
    other = dead("http")

    result = cli("dlq", "resubmit", "--all", "--search", "smtp", "--yes", "--json")

    assert result.json == {"count": 3, "done": 3, "failed": 0, "errors": []}
    assert [state(id) for id in matching] == [JobState.READY] * 3
    assert state(other) is JobState.DEAD


def test_all_can_be_given_a_corrected_payload_and_a_rate(cli, dead):
    ids = [dead(), dead()]

    assert cli("dlq", "resubmit", "--all", "--payload", '{"name": "Ev"}', "--rate", "100/s", "--yes").code == 0
    assert [api.get_job(id).payload for id in ids] == [{"name": "Ev"}] * 2


def test_all_that_match_are_discarded(cli, dead):
    gone, kept = dead("smtp"), dead("http")

    result = cli("dlq", "discard", "--all", "--search", "smtp", "--yes")

    assert (result.code, result.out) == (0, "Discarded 1 job.\n")
    assert api.get_jobs([gone])[0] is None
    assert state(kept) is JobState.DEAD


@pytest.mark.parametrize("verb", ["resubmit", "discard"])
def test_nothing_matching_is_no_failure(cli, verb):
    result = cli("dlq", verb, "--all", "--yes", "--json")

    assert (result.code, result.json["count"]) == (0, 0)


@pytest.mark.parametrize("verb", ["resubmit", "discard"])
def test_without_a_terminal_nothing_is_asked_and_nothing_done(cli, dead, verb):
    id = dead()

    result = cli("dlq", verb, "--all")

    assert (result.code, result.out) == (2, "")
    assert "--yes" in result.err
    assert state(id) is JobState.DEAD


@pytest.mark.parametrize("verb", ["resubmit", "discard"])
def test_a_dry_run_counts_shows_a_sample_and_changes_nothing(cli, dead, verb):
    ids = [dead() for _ in range(12)]

    result = cli("dlq", verb, "--all", "--dry-run", "--json")

    assert (result.json["dry_run"], result.json["count"], len(result.json["sample"])) == (True, 12, 10)
    assert cli("dlq", verb, "--all", "--dry-run").out.startswith(f"Would {verb} 12 jobs")
    assert {state(id) for id in ids} == {JobState.DEAD}


@pytest.mark.parametrize(
    "given",
    [
        ("resubmit",),
        ("discard",),
        ("resubmit", "--type", "x", "--yes"),
        ("resubmit", "some-id", "--all"),
        ("discard", "some-id", "--pool", "x"),
        ("resubmit", "some-id", "--rate", "1/s"),
        ("discard", "some-id", "--dry-run"),
        ("resubmit", "--all", "--rate", "0/s", "--yes"),
        ("discard", "--all", "--rate", "1/s", "--yes"),
    ],
)
def test_a_selection_that_is_unclear_exits_2(cli, dead, given):
    id = dead()

    assert cli("dlq", *given).code == 2
    assert state(id) is JobState.DEAD


def after_one_batch(error):
    """A bulk operation that breaks after its first batch."""

    def broken(*_args, **_options):
        yield api.BulkProgress(total=3, done=2, failed_count=1, failed={"x": StoreUnavailable("busy")})
        raise error

    return broken


def test_a_bulk_that_breaks_tells_how_far_it_came(cli, monkeypatch):
    monkeypatch.setattr(api, "discard_matching", after_one_batch(StoreUnavailable("It went away", fix="Start it.")))

    result = cli("dlq", "discard", "--all", "--yes", "--json")

    assert result.code == 6
    assert (result.json["count"], result.json["done"], result.json["failed"]) == (3, 2, 1)
    assert result.error["code"] == "store_unavailable"
    assert "2 of 3 jobs done" in result.error["fix"]


def test_a_bulk_that_is_interrupted_finishes_its_batch_and_tells_how_far_it_came(cli, monkeypatch):
    def steps(*_args, **_options):
        yield api.BulkProgress(total=30, done=10)
        signal.raise_signal(signal.SIGINT)
        yield api.BulkProgress(total=30, done=20)
        raise AssertionError("it went on")

    monkeypatch.setattr(api, "discard_matching", steps)

    result = cli("dlq", "discard", "--all", "--yes", "--json")

    assert (result.code, result.json["done"], result.error["code"]) == (130, 20, "interrupted")
    assert "20 of 30 jobs done" in result.error["fix"]


def test_an_interrupt_in_the_last_batch_is_too_late(cli, monkeypatch):
    def steps(*_args, **_options):
        signal.raise_signal(signal.SIGINT)
        yield api.BulkProgress(total=10, done=10)

    monkeypatch.setattr(api, "discard_matching", steps)

    assert cli("dlq", "discard", "--all", "--yes").code == 0


def test_a_second_interrupt_stops_at_once(cli, monkeypatch):
    def steps(*_args, **_options):
        yield api.BulkProgress(total=30, done=10)
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")

    monkeypatch.setattr(api, "discard_matching", steps)

    result = cli("dlq", "discard", "--all", "--yes", "--json")

    assert (result.code, result.json["done"]) == (130, 10)


class Person:
    """Somebody at a terminal who answers each question the same."""

    def __init__(self, answer):
        self.answer = answer

    def isatty(self):
        return True

    def readline(self):
        return f"{self.answer}\n"


@pytest.fixture
def asked(monkeypatch, capsys):
    """Runs ``dlq discard --all`` before a person who answers; tells the exit code and what was asked."""
    from jobs.management.commands.dlq import Command

    def run(answer, count=1, meanwhile=lambda: None):
        monkeypatch.setattr("sys.stdin", Person(answer))
        monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
        monkeypatch.setattr(api, "count_matching", lambda filter: meanwhile() or count)
        try:
            Command().run_from_argv(["manage.py", "dlq", "discard", "--all", "--no-color"])
        except SystemExit as end:
            return end.code, capsys.readouterr().err
        return 0, capsys.readouterr().err

    return run


@pytest.mark.parametrize(("answer", "remains"), [("y", False), ("yes", False), ("n", True), ("", True), ("1", True)])
def test_a_person_is_asked_and_the_safe_answer_is_no(asked, dead, answer, remains):
    id = dead()

    code, question = asked(answer)

    assert "Discard 1 job? [y/N]" in question
    assert (api.get_jobs([id])[0] is not None) is remains
    assert code == (1 if remains else 0)


def test_what_dies_while_a_person_thinks_is_not_swept_in(asked, dead, monkeypatch):
    before, after = dead(), []

    def answers(person):
        time.sleep(0.01)  # the next one dies in a later millisecond of the server's clock
        after.append(dead())
        return "y\n"

    monkeypatch.setattr(Person, "readline", answers)

    assert asked("y")[0] == 0
    assert api.get_jobs([before]) == [None]
    assert state(after[0]) is JobState.DEAD


def test_where_there_is_nothing_to_ask_about_what_dies_meanwhile_is_left_alone(asked, dead):
    after = []

    def die():
        time.sleep(0.01)
        after.append(dead())

    assert asked("", count=0, meanwhile=die)[0] == 0
    assert state(after[0]) is JobState.DEAD


@pytest.mark.parametrize(("answer", "remains"), [("y", True), ("5041", False), ("5,041", False)])
def test_for_very_many_the_number_must_be_typed(asked, dead, answer, remains):
    id = dead()

    _, question = asked(answer, count=5041)

    assert "Discard 5,041 jobs? Type the number" in question
    assert (api.get_jobs([id])[0] is not None) is remains


def test_an_error_or_a_type_is_muted_for_a_while_and_shouts_again(cli, dead):
    dead()
    [group] = cli("dlq", "groups", "--json").json["items"]

    cli("dlq", "mute", "--type", "commands.greet", "--for", "8h", "--reason", "known")
    muted = cli("dlq", "mute", "--group", group["fingerprint"], "--for", "1d", "--reason", "ticket 212", "--json").json

    assert [(mute["kind"], mute["reason"]) for mute in muted["items"]] == [("group", "ticket 212")]
    assert len(cli("dlq", "muted", "--json").json["items"]) == 2
    assert cli("dlq", "mute", "--type", "x", "--for", "1d", "--reason", " ").code == 2
    left = cli("dlq", "unmute", "--type", "commands.greet", "--json").json
    assert [mute["kind"] for mute in left["items"]] == ["group"]
    assert cli("dlq", "unmute", "--type", "commands.greet").code == 4
