"""What a node is given: values of the run and of its parents, their results, and how much of all that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from jobs import job
from jobs.core.parents import Parents
from jobs.engine import run_results
from jobs.exceptions import ResultTooLarge
from jobs.registry import registry
from jobs.runtime import relaying
from tests.support.runs import Runs


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
