"""Pools, workers, schedules, workflows and everything at once over the HTTP API."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import api
from jobs.models import Schedule
from tests.dashboard import greeting  # noqa: F401 - its job types
from tests.dashboard.asking import Program
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

pytestmark = pytest.mark.django_db


class TestControls:
    def test_a_pool_is_held_sized_and_limited(self, root: Program, shop: Shop) -> None:
        shop.ready()

        held = root.post("pools/default/pause", {"reason": "deploy", "for_seconds": 60}).document["paused"]
        assert (held["by"], held["reason"]) == ("root", "deploy")
        assert held["until"] is not None
        assert root.post("pools/default/resume").document["paused"] is None
        assert root.post("pools/default/scale", {"slots": 3}).document["slots"] == 3
        limited = root.post("pools/default/limit", {"max_running": 5, "max_pending": 9}).document
        assert (limited["max_running"], limited["max_pending"]) == (5, 9)
        limited = root.post("pools/default/limit", {"max_running": None}).document
        assert (limited["max_running"], limited["max_pending"]) == (None, 9)

    @pytest.mark.parametrize(
        ("address", "body", "words"),
        [
            ("pools/default/scale", None, ""),
            ("pools/default/scale", {}, "slots"),
            ("pools/default/scale", {"slot": 3}, "'slots'"),
            ("pools/default/scale", {"slots": -1}, "slots"),
            ("pools/default/scale", {"slots": 2.5}, "slots"),
            ("pools/default/limit", {}, "max_running"),
            ("pools/default/pause", {"for": 60}, "for_seconds"),
            ("pools/default/pause", {"for_seconds": 0}, "for_seconds"),
            ("pools/default/resume", {"why": "x"}, "reason"),
            ("scheduler/pause", {"reason": "x" * 201}, "reason"),
        ],
    )
    def test_an_order_that_cannot_be_carried_out_is_named(
        self, root: Program, shop: Shop, address: str, body: Any, words: str
    ) -> None:
        shop.ready()
        answer = root.post(address, body)

        assert answer.status == 400
        assert words in answer.words

    def test_an_autoscaler_finds_what_it_needs(self, root: Program, shop: Shop) -> None:
        shop.worker(pools={"default": 4})
        shop.many(6)

        pool = root.get("pools/default").document
        [of_stats] = root.get("stats").document["pools"]

        assert pool["load"] == of_stats["load"] == 1.5
        assert pool["oldest_ready_age_seconds"] is not None
        assert {"predicted_wait_seconds", "slots_actual"} <= pool.keys()

    def test_everything_is_held_and_goes_on(self, root: Program) -> None:
        assert root.post("scheduler/pause", {"reason": "move"}).document["paused"]["reason"] == "move"
        assert root.get("scheduler").document["paused"]["by"] == "root"
        assert root.post("scheduler/resume").document["paused"] is None

    def test_a_worker_is_told_to_go(self, root: Program, shop: Shop) -> None:
        shop.worker(host="h")

        assert root.post("workers/h/1/drain").document["command"] == "drain"
        assert root.post("workers/h/stop").document["command"] == "stop"

    def test_a_host_is_held_and_goes_on(self, root: Program, shop: Shop) -> None:
        shop.worker(host="h")

        held = root.post("workers/h/pause", {"reason": "disk", "for_seconds": 60}).document["paused"]
        assert (held["by"], held["reason"]) == ("root", "disk")
        assert held["until"] is not None
        assert root.get("workers/h/1").document["paused"] == held
        assert root.post("workers/h/resume").document["paused"] is None
        assert root.post("workers/h/1/pause").status == 409
        assert root.post("workers/nobody/pause").status == 404
        assert root.post("workers/h/pause", {"for_seconds": 0}).status == 400

    def test_a_schedule_is_run_paused_and_resumed(self, root: Program) -> None:
        Schedule.objects.create(name="nightly", job_type="http.greet", cron="0 5 * * *")

        made = root.post("schedules/nightly/run").document
        paused = root.post("schedules/nightly/pause", {"reason": "stocktaking"}).document["paused"]
        assert api.get_job(made["id"]).schedule == "nightly"
        assert (paused["by"], paused["reason"]) == ("root", "stocktaking")
        assert root.post("schedules/nightly/resume").document["paused"] is None


class TestWorkflows:
    NODES = ({"key": "load", "type": "http.greet"}, {"key": "ask", "approval": "Go?", "depends_on": ["load"]})

    def test_a_run_is_started_steered_and_shown(self, root: Program, shop: Shop) -> None:
        started = root.post("workflows", {"workflow": {"name": "nightly", "nodes": [*self.NODES]}, "id": "run-1"})
        assert started.status == 201
        assert started.document["started_by"] == "root"
        runs = Runs(shop.engine)
        runs.end(*runs.lease(), "dead")

        assert root.get("workflows/run-1").document["state"] == "failed"
        assert root.post("workflows/run-1/retry").document["again"] == ["load"]
        assert root.post("workflows/run-1/pause", {"reason": "disk"}).document["paused"]["reason"] == "disk"
        assert root.post("workflows/run-1/resume").document["paused"] is None
        assert root.post("workflows/run-1/skip", {"node": "load", "result": [1]}).status == 200
        approved = root.post("workflows/run-1/approve", {"node": "ask", "comment": "seen"}).document
        assert approved["state"] == "succeeded"
        assert root.get("workflows", name="nightly").document["items"][0]["id"] == "run-1"

    def test_the_same_id_again_starts_nothing(self, root: Program) -> None:
        order = {"workflow": {"name": "nightly", "nodes": [*self.NODES]}, "id": "run-1"}
        assert root.post("workflows", order).document["id"] == root.post("workflows", order).document["id"]
        assert len(root.get("workflows").document["items"]) == 1

    def test_a_stored_one_is_started_by_its_name(self, root: Program) -> None:
        api.workflows.define({"name": "nightly", "nodes": [*self.NODES]})

        assert root.post("workflows", {"name": "nightly"}).document["version"] == 1
        assert root.post("workflows", {"name": "nihgtly"}).code == "workflow_not_found"
        assert root.get("workflows/definitions").document["items"][0]["name"] == "nightly"

    def test_a_signal_reaches_the_nodes_that_wait_for_it(self, root: Program) -> None:
        nodes = [{"key": "wait", "signal": "delivered"}]
        root.post("workflows", {"workflow": {"name": "parcel", "nodes": nodes}, "id": "run-2"})

        answer = root.post("workflows/run-2/signal", {"name": "delivered", "payload": {"parcel": 7}})

        assert answer.document["ended"] == 1
        assert answer.document["result"] == {"wait": {"parcel": 7}}

    def test_a_decision_takes_the_permission_that_its_node_names(self, root: Program, program: Any) -> None:
        root.post(
            "workflows", {"workflow": {"name": "ask", "nodes": [{"key": "ask", "approval": "Go?"}]}, "id": "run-3"}
        )

        assert program("viewer").post("workflows/run-3/reject", {"node": "ask"}).status == 403
        assert program("operator").post("workflows/run-3/reject", {"node": "ask"}).document["state"] == "failed"

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({}, "request_invalid"),
            ({"name": "a", "workflow": {}}, "request_invalid"),
            ({"workflow": {"name": "a", "nodes": [{"key": "x", "type": "http.greeet"}]}}, "workflow_invalid"),
            ({"workflow": {"name": "a", "nodes": [{"key": "x", "kay": "y"}]}}, "workflow_invalid"),
        ],
    )
    def test_what_cannot_be_started_is_named(self, root: Program, body: Any, code: str) -> None:
        answer = root.post("workflows", body)

        assert (answer.status, answer.code) == (400, code)
