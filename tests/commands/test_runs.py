"""``workflows …`` as people and scripts use it: runs, what is done to them, and stored definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs import api
from jobs.engine import get_engine
from jobs.models import AuditEntry
from jobs.services.relay import RelayService
from tests.commands.conftest import Cli
from tests.support.runs import Runs

pytestmark = pytest.mark.django_db(transaction=True)

NODES: list[dict[str, Any]] = [
    {"key": "extract", "type": "commands.greet", "payload": {"name": {"$from": "run.payload.who", "default": "x"}}},
    {"key": "load", "type": "commands.greet", "depends_on": ["extract"]},
    {"key": "alarm", "type": "commands.greet", "on_failure": ["load"]},
]
NIGHTLY = {"name": "nightly", "nodes": NODES}


@pytest.fixture
def runs() -> Runs:
    """A worker that does what the test says, and a stored workflow."""
    api.workflows.define(NIGHTLY)
    return Runs(get_engine())


@pytest.fixture
def run(runs: Runs) -> str:
    """A run of it that has just been started."""
    return api.workflows.start("nightly").id


class TestStart:
    def test_a_stored_one_is_started_and_answered_as_the_contract_has_it(self, cli: Cli, runs: Runs) -> None:
        started = cli("workflows", "start", "nightly", "--payload", '{"who": "Ana"}', "--json")

        assert started.code == 0
        document = started.json
        assert {"id", "name", "state", "created_at", "finished_at", "nodes"} <= document.keys()
        assert (document["name"], document["state"], document["version"]) == ("nightly", "running", 1)
        assert [(node["key"], node["state"], node["type"]) for node in document["nodes"]] == [
            ("extract", "ready", "commands.greet"),
            ("load", "blocked", "commands.greet"),
            ("alarm", "blocked", "commands.greet"),
        ]
        assert api.get_job(document["nodes"][0]["job"]).payload == {"name": "Ana"}
        assert document["nodes"][1]["job"] is None

    def test_who_started_it_is_on_record(self, cli: Cli, runs: Runs) -> None:
        run_id = cli("workflows", "start", "nightly").out.split("\t")[0]

        entry = AuditEntry.objects.get(action="workflow.start")

        assert (entry.source, entry.target, entry.after) == ("command", "nightly", {"run": run_id})
        assert api.workflows.get(run_id).started_by == entry.who

    def test_one_in_a_file_needs_no_store(self, cli: Cli, tmp_path: Path) -> None:
        file = tmp_path / "flow.json"
        file.write_text(json.dumps(NIGHTLY))

        started = cli("workflows", "start", "--file", str(file), "--id", "mine", "--json")
        again = cli("workflows", "start", "--file", str(file), "--id", "mine", "--json")

        assert (started.code, again.code) == (0, 0)
        assert started.json["id"] == again.json["id"] == "mine"
        assert started.json["version"] is None
        assert len(cli("workflows", "list", "--json").json["items"]) == 1

    def test_a_name_that_is_not_stored_is_not_found(self, cli: Cli, runs: Runs) -> None:
        refused = cli("workflows", "start", "nigthly", "--json")

        assert refused.code == 3
        assert refused.error["code"] == "workflow_not_found"
        assert refused.error["fix"] == "Did you mean 'nightly'?"

    @pytest.mark.parametrize(
        "words",
        [[], ["nightly", "--file", "x"], ["nightly", "--payload", "[1]"], ["nightly", "--wait-timeout", "1s"]],
    )
    def test_what_cannot_be_meant_is_a_usage_error(self, cli: Cli, runs: Runs, words: list[str]) -> None:
        assert cli("workflows", "start", *words).code == 2

    def test_one_that_cannot_run_is_refused_with_its_nodes(self, cli: Cli) -> None:
        nodes = [{"key": "a", "type": "commands.greet", "depends_on": ["a"]}]

        refused = cli("workflows", "start", "--file", "-", stdin=json.dumps({"name": "w", "nodes": nodes}).encode())

        assert refused.code == 2
        assert "Node 'a' waits for itself" in refused.err

    def test_a_wait_that_is_too_short_says_that_the_run_goes_on(self, cli: Cli, runs: Runs) -> None:
        late = cli("workflows", "start", "nightly", "--wait", "--wait-timeout", "0.05s")

        assert late.code == 6
        assert "the time to wait is over" in late.err


class TestLook:
    def test_the_graph_says_how_each_node_stands_and_why(self, cli: Cli, runs: Runs, run: str) -> None:
        runs.lease()
        running = cli("workflows", "show", run)

        assert running.code == 0
        assert "workflow    nightly, version 1" in running.out
        assert running.out.splitlines()[-3:] == [
            "extract  commands.greet: running",
            "└─ load  commands.greet: blocked. Waits for extract (running)",
            "   └─ alarm  commands.greet: blocked. Waits for load (waits itself) to fail · if load fails",
        ]

    def test_a_failure_is_shown_with_its_error_and_what_was_skipped_with_its_reason(
        self, cli: Cli, runs: Runs, run: str
    ) -> None:
        runs.run_all({"extract": "dead"})

        shown = cli("workflows", "show", run).out

        assert "state       failed" in shown
        assert "nodes       3: 1 dead, 2 skipped" in shown
        assert "extract  commands.greet: dead in " in shown
        assert "ValueError: extract failed" in shown
        assert "load  commands.greet: skipped. extract is dead" in shown

    def test_a_crowd_is_one_line_with_its_counts(self, cli: Cli, runs: Runs) -> None:
        nodes = [{"key": f"page:{number}", "type": "commands.greet"} for number in range(30)]
        run_id = api.workflows.start({"name": "crowd", "nodes": nodes}).id
        runs.run_all(lambda node: "dead" if node in ("page:3", "page:4") else "succeeded")

        shown = cli("workflows", "show", run_id).out

        assert shown.splitlines()[-1] == "page:0  commands.greet  and 29 more to page:29: 28 succeeded, 2 dead"

    def test_the_list_is_newest_first_and_can_be_narrowed(self, cli: Cli, runs: Runs, run: str) -> None:
        runs.run_all({"load": "dead", "alarm": "dead"})
        second = api.workflows.start("nightly").id

        everything = cli("workflows", "list", "--json").json
        assert [(item["id"], item["state"]) for item in everything["items"]] == [(second, "running"), (run, "failed")]
        assert everything["next_cursor"] is None
        failed = cli("workflows", "list", "--state", "failed").out.splitlines()
        assert failed[0] == "run\tworkflow\tversion\tstate\tended\tcreated\ttook"
        assert failed[1].split("\t")[:5] == [run, "nightly", "1", "failed", "3 of 3"]
        assert cli("workflows", "list", "--name", "other", "--json").json["items"] == []
        page = cli("workflows", "list", "--limit", "1", "--json").json
        rest = cli("workflows", "list", "--limit", "1", "--cursor", page["next_cursor"], "--json").json
        assert [item["id"] for item in page["items"] + rest["items"]] == [second, run]

    def test_a_terminal_gets_shapes_and_colours_beside_the_words(
        self, cli: Cli, runs: Runs, run: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        runs.run_all({"load": "dead"})
        monkeypatch.setenv("FORCE_COLOR", "1")

        shown = cli("workflows", "show", run).out

        assert "\x1b[32m✓ \x1b[0m\x1b[1mextract\x1b[0m  commands.greet: \x1b[32msucceeded\x1b[0m in " in shown
        assert "\x1b[1;31m✗ \x1b[0m\x1b[1mload\x1b[0m  commands.greet: \x1b[1;31mdead\x1b[0m in " in shown
        without = cli("workflows", "show", run, "--no-color").out
        assert "\x1b" not in without
        assert "✗" not in without

    def test_a_run_is_put_beside_an_earlier_one(self, cli: Cli, runs: Runs, run: str) -> None:
        runs.run_all()
        api.workflows.define(
            {**NIGHTLY, "nodes": [{**NODES[0], "max_retries": 5}, NODES[1], {**NODES[2], "key": "page"}]}
        )
        second = api.workflows.start("nightly", {"who": "Ana"}).id
        runs.run_all({"load": "dead"})

        people = cli("workflows", "diff", second)
        lines = people.out.splitlines()
        assert people.code == 0
        assert lines[0].startswith(f"run      {second}  nightly, version 2: succeeded, ")
        assert lines[1].startswith(f"against  {run}  nightly, version 1: succeeded, ")
        assert 'payload  who: nothing → "Ana"' in lines
        table = [line.split("\t") for line in lines[lines.index("") + 1 :]]
        assert [(row[0], row[1], row[2], row[6]) for row in table[1:]] == [
            ("extract", "succeeded", "succeeded", "changed: max_retries"),
            ("load", "dead", "succeeded", "ended otherwise"),
            ("page", "succeeded", "-", "new"),
            ("alarm", "-", "skipped", "not there any more"),
        ]
        document = cli("workflows", "diff", second, run, "--json").json
        assert (document["run"]["id"], document["other"]["id"], document["usual_of"]) == (second, run, 1)
        assert [node["key"] for node in document["nodes"] if node["is_news"]] == ["extract", "load", "page", "alarm"]
        same = cli("workflows", "diff", run, run)
        assert "3 nodes are as before: --all shows everything." in same.err
        assert len(cli("workflows", "diff", run, run, "--all").out.splitlines()) == 3 + 1 + 1 + 3
        assert cli("workflows", "diff", run).code == 2
        assert cli("workflows", "diff", "nope").code == 3

    @pytest.mark.parametrize("verb", ["show", "cancel", "retry", "pause", "resume", "wait"])
    def test_a_run_that_is_not_there_is_not_found(self, cli: Cli, verb: str) -> None:
        missing = cli("workflows", verb, "nope", "--json")

        assert missing.code == 3
        assert missing.error["code"] == "run_not_found"

    def test_waiting_ends_with_how_the_run_ended(self, cli: Cli, runs: Runs, run: str) -> None:
        runs.run_all()
        other = api.workflows.start("nightly").id
        runs.run_all({"load": "dead", "alarm": "dead"})

        assert cli("workflows", "wait", run).code == 0
        failed = cli("workflows", "wait", other, "--json")
        assert (failed.code, failed.error["code"], failed.json["state"]) == (1, "run_failed", "failed")


class TestSteer:
    def test_a_cancelled_run_starts_nothing_more(self, cli: Cli, runs: Runs, run: str) -> None:
        cancelled = cli("workflows", "cancel", run, "--reason", "wrong day", "--json")

        assert cancelled.code == 0
        assert {node["key"]: node["state"] for node in cancelled.json["nodes"]} == {
            "extract": "cancelled",
            "load": "cancelled",
            "alarm": "cancelled",
        }
        assert "cancelled   by " in cli("workflows", "show", run).out
        RelayService(runs.engine).tick()
        assert cli("workflows", "show", run, "--json").json["state"] == "cancelled"
        assert AuditEntry.objects.get(action="workflow_run.cancel").reason == "wrong day"

    def test_what_a_retry_runs_again_is_listed_first(self, cli: Cli, runs: Runs, run: str) -> None:
        runs.run_all({"extract": "dead"})

        planned = cli("workflows", "retry", run, "--dry-run")
        assert planned.out.splitlines() == ["extract\tagain", "load\twaiting", "alarm\twaiting"]
        assert cli("workflows", "show", run, "--json").json["state"] == "failed"

        done = cli("workflows", "retry", run, "--json")
        assert (done.code, done.json["again"], done.json["state"]) == (0, ["extract"], "running")
        runs.run_all()
        assert cli("workflows", "show", run, "--json").json["state"] == "succeeded"

    def test_a_retry_from_a_node_runs_what_comes_after_it_too(self, cli: Cli, runs: Runs, run: str) -> None:
        runs.run_all()
        runs.ran.clear()

        done = cli("workflows", "retry", run, "--from", "load")

        assert done.code == 0
        assert "Runs again now: load." in done.err
        runs.run_all()
        assert runs.ran == ["load"]

    def test_a_run_in_which_nothing_failed_has_nothing_to_retry(self, cli: Cli, runs: Runs, run: str) -> None:
        runs.run_all()

        assert cli("workflows", "retry", run).code == 4
        assert cli("workflows", "retry", run, "--from", "laod").code == 2

    def test_a_paused_run_says_who_paused_it_and_goes_on_after_it(self, cli: Cli, runs: Runs, run: str) -> None:
        cli("workflows", "pause", run, "--reason", "disk move")
        assert ": disk move" in cli("workflows", "show", run).out
        runs.run_all()
        assert cli("workflows", "show", run, "--json").json["state"] == "running"

        assert cli("workflows", "resume", run).code == 0
        runs.run_all()
        assert cli("workflows", "show", run, "--json").json["state"] == "succeeded"


class TestSkip:
    def test_a_node_that_failed_is_skipped_and_what_comes_after_it_goes_on(
        self, cli: Cli, runs: Runs, run: str
    ) -> None:
        runs.run_all({"extract": "dead"})

        done = cli("workflows", "skip", run, "extract", "--result", '{"rows": 1}', "--reason", "done by hand", "--json")

        assert done.code == 0
        extract, load, _ = done.json["nodes"]
        assert (extract["state"], extract["error"]["type"], load["state"]) == ("succeeded", "Skipped", "ready")
        runs.run_all()
        assert "extract  commands.greet: succeeded. " in (shown := cli("workflows", "show", run).out)
        assert " skipped it: done by hand" in shown
        assert AuditEntry.objects.get(action="workflow_run.skip").reason == "done by hand"

    def test_what_cannot_be_skipped_is_refused_as_what_it_is(self, cli: Cli, runs: Runs, run: str) -> None:
        assert cli("workflows", "skip", run, "laod").code == 2
        assert cli("workflows", "skip", run, "load", "--result", "{").code == 2
        runs.run_all()
        assert cli("workflows", "skip", run, "load").code == 4
        assert cli("workflows", "skip", "nope", "load").code == 3


class TestAnswer:
    @pytest.fixture
    def waiting(self, runs: Runs) -> str:
        nodes = [
            {"key": "ask", "approval": "Ship it?"},
            {"key": "parcel", "signal": "delivered", "depends_on": ["ask"]},
            {"key": "end", "type": "commands.greet", "depends_on": ["parcel"]},
        ]
        return api.workflows.start({"name": "ship", "nodes": nodes}).id

    def test_an_approval_and_a_signal_let_a_run_go_on(self, cli: Cli, runs: Runs, waiting: str) -> None:
        assert "ask  approval: needs approval" in cli("workflows", "show", waiting).out
        approved = cli("workflows", "approve", waiting, "ask", "--comment", "seen", "--json")
        assert approved.json["nodes"][0]["state"] == "succeeded"

        told = cli("workflows", "signal", waiting, "delivered", "--payload", '{"at": "noon"}')
        assert told.out == f"{waiting}\t1 node went on\n"
        runs.run_all()
        assert cli("workflows", "show", waiting, "--json").json["state"] == "succeeded"

    def test_a_rejection_fails_it(self, cli: Cli, waiting: str) -> None:
        cli("workflows", "reject", waiting, "ask", "--comment", "not today")

        shown = cli("workflows", "show", waiting).out
        assert "said no: not today" in shown
        assert cli("workflows", "approve", waiting, "ask").code == 4

    def test_a_signal_that_nothing_waits_for_and_a_node_that_is_no_approval_are_refused(
        self, cli: Cli, waiting: str
    ) -> None:
        assert cli("workflows", "signal", waiting, "delivred").code == 2
        assert cli("workflows", "approve", waiting, "end").code == 2
        assert cli("workflows", "signal", waiting, "delivered", "--payload", "{").code == 2


class TestDefinitions:
    def test_they_go_out_as_a_file_and_come_back(self, cli: Cli, runs: Runs, tmp_path: Path) -> None:
        file = tmp_path / "nightly.json"
        file.write_text(cli("workflows", "export", "nightly").out)
        assert cli("workflows", "validate", "--file", str(file)).code == 0
        assert cli("workflows", "import", str(file)).out == "nightly\tunchanged\n"

        changed = {**NIGHTLY, "nodes": NODES[:2]}
        file.write_text(json.dumps({"workflows": [changed, {**changed, "name": "other"}]}))
        assert cli("workflows", "import", str(file), "--dry-run", "--json").json == {
            "dry_run": True,
            "created": ["other"],
            "changed": ["nightly"],
            "unchanged": [],
        }
        assert cli("workflows", "import", str(file)).code == 0

        versions = cli("workflows", "versions", "nightly", "--json").json["items"]
        assert [(version["number"], version["removed"]) for version in versions] == [(2, ["alarm"]), (1, [])]
        assert cli("workflows", "restore", "nightly", "1").out == "nightly\tversion 3\n"
        assert cli("workflows", "delete", "other").code == 0
        assert cli("workflows", "versions", "nope").code == 3

    @pytest.mark.parametrize("content", [b"", b"[1]", b'"x"', b'{"name": "x", "nodes": []}', b'{"workflows": 3}'])
    def test_a_file_that_holds_no_workflow_is_refused(self, cli: Cli, content: bytes) -> None:
        assert cli("workflows", "import", "-", stdin=content).code == 2

    def test_the_list_tells_how_they_have_been_doing(self, cli: Cli, runs: Runs) -> None:
        listed = cli("workflows", "definitions")

        assert listed.out.splitlines() == [
            "name\tversion\tnodes\truns\tsucceeded\tmedian\tlast\tchanged\tdescription",
            listed.out.splitlines()[1],
        ]
        assert listed.out.splitlines()[1].startswith("nightly\t1\t3\t0\t-\t-\t-\t")
        assert cli("workflows", "definitions", "--json").json["items"][0]["totals"]["success_rate"] is None
