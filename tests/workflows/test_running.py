"""A run from its start to its end: who is released when, who is skipped, what children are given, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from jobs import job
from jobs.core.job import LeasedJob
from jobs.core.parents import Parents
from jobs.engine import Engine, run_nodes, run_results
from jobs.exceptions import ResultTooLarge, RunNotFound
from jobs.registry import registry
from jobs.runtime import relaying
from tests.support.clock import ManualClock
from tests.support.runs import Runs

NIGHTLY: list[dict[str, Any]] = [
    {"key": "extract"},
    {"key": "load", "depends_on": ["extract"], "pool": "background", "max_retries": 5},
    {"key": "ok", "on_success": ["load"]},
    {"key": "alarm", "on_failure": ["extract", "load"], "join": "any"},
    {"key": "clean", "on_complete": ["load"]},
]


def test_all_goes_well(runs: Runs) -> None:
    run = runs.start(*NIGHTLY)

    runs.run_all()

    assert runs.ran[:2] == ["extract", "load"]
    assert runs.states(run) == {
        "extract": "succeeded",
        "load": "succeeded",
        "ok": "succeeded",
        "alarm": "skipped",
        "clean": "succeeded",
    }
    assert runs.facts(run).state == "succeeded"


def test_a_failure_skips_what_wants_success_and_that_spreads(runs: Runs) -> None:
    run = runs.start(*NIGHTLY)

    runs.run_all({"extract": "dead"})

    assert sorted(runs.ran) == ["alarm", "clean", "extract"]
    assert runs.states(run) == {
        "extract": "dead",
        "load": "skipped",
        "ok": "skipped",
        "alarm": "succeeded",
        "clean": "succeeded",
    }
    assert runs.facts(run).state == "succeeded"


def test_a_run_whose_dead_node_nobody_deals_with_has_failed(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})

    runs.run_all({"a": "dead"})

    facts = runs.facts(run)
    assert (facts.state, facts.counts["dead"], facts.counts["skipped"]) == ("failed", 1, 1)
    assert runs.nodes(run)["a"].error == {"type": "ValueError", "message": "a failed", "traceback": ""}


@pytest.mark.parametrize(
    ("join", "released_after"), [("all", 3), ("any", 1), (2, 2)], ids=["all", "any", "at least two"]
)
def test_a_join_is_released_when_as_many_parents_as_it_wants_have_ended(
    runs: Runs, join: Any, released_after: int
) -> None:
    runs.start({"key": "a"}, {"key": "b"}, {"key": "c"}, {"key": "d", "depends_on": ["a", "b", "c"], "join": join})
    parents = runs.lease()

    for number, parent in enumerate(parents, start=1):
        runs.end(parent)
        runs.lease()
        assert ("d" in runs.ran) == (number >= released_after)

    assert runs.ran.count("d") == 1


def test_a_retry_of_a_node_is_no_end_of_it(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "on_failure": ["a"]})
    (a,) = runs.lease()

    runs.fail(a, "retry")

    assert runs.states(run) == {"a": "ready", "b": "blocked"}


def test_nodes_keep_all_options_of_jobs(runs: Runs) -> None:
    runs.start(
        {
            "key": "a",
            "pool": "background",
            "priority": 7,
            "max_retries": 5,
            "timeout": 3,
            "backoff": {"kind": "fixed", "seconds": 2},
            "tags": ["night"],
            "meta": {"team": "blue"},
            "concurrency_key": "k",
            "rate_key": "r",
            "payload": {"n": 1},
        }
    )

    (found,) = runs.lease()

    wanted = (found.route.pool, found.priority, found.max_retries, found.timeout, found.payload)
    assert wanted == ("background", 7, 5, 3.0, b'{"n":1}')
    assert found.backoff[:2] == ("fixed", 2.0)
    assert found.extras["tags"] == ["night"]
    assert found.extras["meta"] == {"team": "blue"}
    assert (found.extras["concurrency_key"], found.extras["rate_key"]) == ("k", "r")


def test_a_delay_counts_from_the_release(runs: Runs, clock: ManualClock) -> None:
    runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"], "delay": 30})
    runs.run_all()
    clock.advance(29)
    assert runs.lease() == []

    clock.advance(2)

    assert [found.extras["node"] for found in runs.lease()] == ["b"]


# What children are given ---------------------------------------------------------------------------------------------


def test_payloads_take_values_from_the_run_and_from_parents(runs: Runs) -> None:
    runs.start(
        {"key": "extract", "payload": {"day": {"$from": "run.payload.day"}}},
        {"key": "load", "depends_on": ["extract"], "payload": {"first": {"$from": "extract.result.rows.0"}}},
        {"key": "alarm", "on_failure": ["load"], "payload": {"why": {"$from": "load.error.message"}}},
        payload={"day": "2026-01-01"},
    )

    (extract,) = runs.lease()
    runs.end(extract, result={"rows": [7, 8]})
    (load,) = runs.lease()
    runs.end(load, "dead")
    (alarm,) = runs.lease()

    assert extract.payload == b'{"day":"2026-01-01"}'
    assert load.payload == b'{"first":7}'
    assert alarm.payload == b'{"why":"load failed"}'


@pytest.mark.parametrize("value", [2**70, -(2**63) - 1, 1.5, "é\0", [None, True, {"a": []}]])
def test_whatever_json_a_payload_holds_its_job_gets(runs: Runs, value: Any) -> None:
    runs.start({"key": "a", "payload": {"value": value}})

    (job,) = runs.lease()
    assert json.loads(job.payload) == {"value": value}


def test_a_run_that_a_former_version_began_to_write_down_as_json_goes_on(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as former:
        former.setattr(run_nodes, "encode_node", msgspec.json.encode)
        former.setattr(runs.engine.workflows, "open", lambda _: pytest.fail("it died"))
        with pytest.raises(pytest.fail.Exception, match="it died"):
            runs.start(*NIGHTLY, id="r")
    run = runs.start(*NIGHTLY, id="r")

    runs.run_all({"load": "dead"})

    assert runs.ran == ["extract", "load", "alarm", "clean"]
    assert runs.nodes(run)["load"].node.max_retries == 5


def test_a_node_whose_payload_cannot_be_had_is_dead_and_says_why(runs: Runs) -> None:
    run = runs.start(
        {"key": "extract"},
        {"key": "load", "depends_on": ["extract"], "payload": {"rows": {"$from": "extract.result.rows"}}},
        {"key": "alarm", "on_failure": ["load"]},
    )

    runs.run_all(extract={"lines": 3})

    load = runs.nodes(run)["load"]
    assert (load.state, load.job) == ("dead", None)
    assert load.error is not None
    assert "extract.result is an object with 'lines', without 'rows'" in load.error["message"]
    assert runs.ran == ["extract", "alarm"]
    assert runs.facts(run).state == "succeeded"


def test_a_payload_that_does_not_fit_the_type_is_found_at_the_release(runs: Runs) -> None:
    with registry.restored():

        @job("test.node")
        def load(rows: int) -> None: ...

        run = runs.start(
            {"key": "a", "type": "other"},
            {"key": "b", "depends_on": ["a"], "payload": {"rows": {"$from": "a.result"}}},
        )
        runs.run_all(a="many")

    error = runs.nodes(run)["b"].error
    assert error is not None
    assert error["type"] == "PayloadInvalid"
    assert "rows" in error["message"]


def test_handlers_find_the_results_of_parents_that_succeeded(runs: Runs) -> None:
    run = runs.start(
        {"key": "a"}, {"key": "b"}, {"key": "c"}, {"key": "d", "on_complete": ["a", "b", "c"]}, {"key": "other"}
    )
    runs.run_all({"b": "dead"}, a=[1], other="not asked for")

    parents = Parents(runs.engine.workflows.parents(run, ["a", "b", "c"]))

    assert dict(parents) == {"a": [1], "c": None}
    with pytest.raises(KeyError, match="'b' is dead and left no result"):
        parents["b"]
    with pytest.raises(KeyError, match="'other' is no parent"):
        parents["other"]
    assert parents.ended["b"].error["message"] == "b failed"


def test_a_result_that_was_too_large_is_an_error_where_it_is_used(runs: Runs) -> None:
    run = runs.start({"key": "a"})
    runs.run_all(a={"cut": True, "bytes": 300_000, "preview": "["})

    with pytest.raises(ResultTooLarge, match="'a' has 300000 bytes"):
        Parents(runs.engine.workflows.parents(run, ["a"]))["a"]


CUT = {"cut": True, "bytes": 300_000, "preview": "["}


def test_a_payload_that_takes_a_result_that_was_too_large_cannot_be_had_and_no_default_hides_it(runs: Runs) -> None:
    take = {"$from": "a.result.rows", "default": []}
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"], "payload": {"rows": take}})

    runs.run_all(a=CUT)

    error = runs.nodes(run)["b"].error
    assert error is not None
    assert "The result of 'a' has 300000 bytes" in error["message"]
    assert runs.ran == ["a"]


@pytest.mark.parametrize("item", ["x" * 30_000, CUT], ids=["all together", "one of them alone"])
def test_results_of_a_list_that_are_too_large_are_counted_and_not_read(
    runs: Runs, monkeypatch: pytest.MonkeyPatch, item: Any
) -> None:
    run = runs.start({"key": "page", "each": list(range(150))}, {"key": "merge", "depends_on": ["page"]})
    for leased in runs.lease():
        runs.end(leased, result=item)
    read = codec_reads(monkeypatch)

    with pytest.raises(ResultTooLarge, match=r"'page' has \d+ bytes or more"):
        Parents(runs.engine.workflows.parents(run, ["page"]))["page"]

    assert sum(read) < 100_000
    runs.run_all()
    assert runs.facts(run).state == "succeeded"


def codec_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of the results that are read from now on."""
    sizes: list[int] = []
    decode = run_results.decode_json

    def counted(raw: bytes | None) -> Any:
        sizes.append(len(raw or b""))
        return decode(raw)

    monkeypatch.setattr(run_results, "decode_json", counted)
    return sizes


def test_results_are_handed_on_as_far_as_there_is_room_for_all_of_them_together(runs: Runs) -> None:
    run = runs.start(*({"key": f"n{number}"} for number in range(20)))
    for leased in runs.lease():
        runs.end(leased, result="x" * 250_000)

    found = runs.engine.workflows.results(run)

    whole = [key for key, result in found.items() if isinstance(result, str)]
    assert (len(found), len(whole)) == (20, 16)
    assert found["n19"] == {"cut": True, "bytes": 250_002, "preview": ""}
    parents = Parents(runs.engine.workflows.parents(run, found))
    assert len(parents["n15"]) == 250_000
    with pytest.raises(ResultTooLarge, match="'n16' has 250002 bytes"):
        parents["n16"]


def test_nodes_that_are_released_together_take_no_room_from_each_other(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (run_results, relaying):
        monkeypatch.setattr(module, "GROUP_LIMIT", 2)
    parts = [{"key": f"part{number}"} for number in range(6)]
    loads = [
        {"key": f"load{number}", "depends_on": [f"part{number}", "go"], "payload": {"n": {"$from": source}}}
        for number, source in enumerate(f"part{number}.result.n" for number in range(6))
    ]
    runs.start({"key": "go"}, *parts, *loads)
    jobs = {job.extras["node"]: job for job in runs.lease()}
    for number in range(6):
        runs.end(jobs[f"part{number}"], result={"n": number, "rest": "x" * 250_000})
    runs.end(jobs["go"])

    assert sorted(job.payload for job in runs.lease()) == [b'{"n":%d}' % number for number in range(6)]


def test_where_there_is_no_room_any_more_what_left_no_result_is_told_as_it_is(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_results, "GROUP_LIMIT", 0)
    nodes = ("large", "empty", "dead", "late")
    run = runs.start(*({"key": key} for key in nodes))
    for leased in runs.lease():
        node = leased.extras["node"]
        if node != "late":
            runs.end(leased, "dead" if node == "dead" else "succeeded", result="x" if node == "large" else None)

    found = runs.engine.workflows.parents(run, nodes)

    assert {key: ended.state for key, ended in found.items()} == {
        "large": "succeeded",
        "empty": "succeeded",
        "dead": "dead",
    }
    assert found["large"].result == {"cut": True, "bytes": 3, "preview": ""}
    assert found["empty"].result is None
    assert runs.engine.workflows.results(run)["empty"] is None


def test_the_result_of_a_run_is_that_of_the_nodes_that_nobody_waits_for(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c"}, {"key": "d", "on_failure": ["a"]})

    runs.run_all(a=1, b=2, c=3)

    assert runs.engine.workflows.results(run) == {"b": 2, "c": 3}


# A dead node lives again ---------------------------------------------------------------------------------------------


def resubmit(runs: Runs, run: str, key: str) -> LeasedJob:
    job_id = runs.nodes(run)[key].job
    assert job_id is not None
    route = runs.engine.topology.partitions()[0]
    runs.engine.jobs.resubmit(job_id)
    runs.relay.tell(route, [job_id])
    (leased,) = runs.lease()
    return leased


def test_a_resubmitted_node_that_succeeds_opens_again_what_was_skipped_because_of_it(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]}, {"key": "c", "depends_on": ["b"]})
    runs.run_all({"a": "dead"})
    assert runs.facts(run).state == "failed"

    again = resubmit(runs, run, "a")
    assert (runs.facts(run).state, runs.facts(run).finished_at_ms) == ("running", 0)
    assert runs.states(run) == {"a": "ready", "b": "blocked", "c": "blocked"}
    runs.end(again)
    runs.run_all()

    assert runs.states(run) == {"a": "succeeded", "b": "succeeded", "c": "succeeded"}
    facts = runs.facts(run)
    assert (facts.state, facts.lives) == ("succeeded", 1)


def test_what_ran_because_a_node_was_dead_does_not_run_again(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "alarm", "on_failure": ["a"]}, {"key": "b", "depends_on": ["a"]})
    runs.run_all({"a": "dead"})

    runs.end(resubmit(runs, run, "a"), "dead")
    runs.run_all()

    assert runs.ran == ["a", "alarm", "a"]
    assert runs.states(run) == {"a": "dead", "alarm": "succeeded", "b": "skipped"}


def test_news_that_come_late_change_nothing(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.end(a, "dead", tell=False)
    (late,) = runs.engine.outbox.read(a.route, [a.id])
    runs.tell([a])
    runs.end(resubmit(runs, run, "a"))

    reply = runs.engine.workflows.step(run, [late])

    assert reply.fresh == 0
    assert runs.states(run)["a"] == "succeeded"


# Runs among others ---------------------------------------------------------------------------------------------------


def test_the_same_id_starts_one_run(runs: Runs) -> None:
    run = runs.start({"key": "a"}, id="night-1")
    runs.start({"key": "x"}, {"key": "y"}, id="night-1")

    runs.run_all()

    assert runs.ran == ["a"]
    assert runs.states(run) == {"a": "succeeded"}


def test_a_start_that_broke_off_goes_on_when_it_is_made_again(runs: Runs, engine: Engine) -> None:
    nodes = [{"key": "a"}, {"key": "b", "depends_on": ["a"]}]
    engine.workflows.create("night-1", "test", {"payload": {}})

    runs.start(*nodes, id="night-1")
    runs.run_all()

    assert runs.states("night-1") == {"a": "succeeded", "b": "succeeded"}


def test_a_run_that_is_not_there(runs: Runs) -> None:
    with pytest.raises(RunNotFound, match="no run 'gone'"):
        runs.facts("gone")
    with pytest.raises(RunNotFound):
        runs.relay.advance("gone")


def test_ended_runs_are_told_oldest_end_first_and_again_when_they_went_on(runs: Runs, clock: ManualClock) -> None:
    first, second = runs.start({"key": "a"}), runs.start({"key": "b"})
    jobs = {job.extras["workflow_run"]: job for job in runs.lease()}
    runs.end(jobs[second], "dead")
    clock.advance(1)
    runs.end(jobs[first])
    seen = [facts.id for facts in runs.engine.workflows.ended(0)]
    since = clock.advance(1)

    runs.end(resubmit(runs, second, "b"))

    assert seen == [second, first]
    assert [(facts.id, facts.state) for facts in runs.engine.workflows.ended(since)] == [(second, "succeeded")]
