"""Runs under the hands of people: what the API says, refuses and records; and handlers that add nodes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from jobs import Context, Dead, Workflow, job, workflows
from jobs.api import audit
from jobs.api.workflow_definitions import WorkflowNotFound
from jobs.exceptions import OptionInvalid, PayloadTooLarge, RunNotFound, WorkflowInvalid, WrongState
from jobs.testing import drain, isolated

pytestmark = pytest.mark.django_db

ran: list[str] = []


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    ran.clear()
    with isolated():
        yield


@job("control.step")
def step(name: str, *, fails: bool = False) -> str:
    ran.append(name)
    if fails and ran.count(name) == 1:
        raise Dead("not this time")
    return name


@job("control.list")
def listed(count: int, *, ctx: Context) -> list[int]:
    return list(range(count))


@job("control.grows")
def grows(*, ctx: Context) -> None:
    assert ctx.workflow is not None
    ctx.workflow.add("more", step, {"name": "more"}, depends_on="a")
    ctx.workflow.add("more", step, {"name": "again"}, depends_on="a")  # as a repeated attempt would
    ran.append(str(ctx.workflow))


@job("control.grows_async")
async def grows_async(*, ctx: Context) -> None:
    assert ctx.workflow is not None
    await ctx.workflow.aadd_many([{"key": f"n{n}", "type": step, "payload": {"name": f"n{n}"}} for n in range(3)])


@job("control.merge")
def merge(*, ctx: Context) -> int:
    return sum(ctx.parents["page"])


def states(run: str) -> dict[str, str]:
    return {view.key: str(view.state) for view in workflows.nodes(run)}


def actions() -> list[tuple[str, str | None, str]]:
    return [(entry.action, entry.target, entry.reason) for entry in audit.list().items]


def two(**more: Any) -> Workflow:
    flow = Workflow("two", **more)
    flow.chain(flow.add("a", step, {"name": "a"}), flow.add("b", step, {"name": "b", "fails": True}))
    return flow


class TestGrowth:
    def test_a_handler_adds_nodes_and_the_run_waits_for_them(self) -> None:
        flow = Workflow("grows")
        flow.add("a", grows)
        run = workflows.start(flow).id

        drain()

        assert ran == [run, "more"]
        assert states(run) == {"a": "succeeded", "more": "succeeded"}
        assert workflows.get(run).state == "succeeded"

    def test_an_async_one_too(self) -> None:
        flow = Workflow("grows")
        flow.add("a", grows_async)
        run = workflows.start(flow).id

        drain()

        assert sorted(ran) == ["n0", "n1", "n2"]
        assert workflows.get(run).state == "succeeded"

    def test_a_list_that_a_parent_found_and_what_comes_of_all_of_it(self) -> None:
        flow = Workflow("pages")
        rows = flow.add("rows", listed, {"count": flow.payload("count")})
        page = flow.map("page", listed, rows.result(), {"count": flow.item()}, depends_on=rows)
        flow.map("size", listed, page.result(), {"count": flow.index()}, depends_on=page)
        run = workflows.start(flow, {"count": 3}).id

        drain()

        assert states(run)["page:2"] == "succeeded"
        assert workflows.results(run) == {"size": [[], [0], [0, 1]]}

    def test_a_stored_workflow_runs_as_a_node_of_another_as_it_was_at_the_start(self) -> None:
        inner = Workflow("inner")
        inner.add("x", step, {"name": inner.payload("name")})
        workflows.define(inner)
        flow = Workflow("outer")
        flow.sub("sub", "inner", {"name": "deep"})
        run = workflows.start(flow).id
        workflows.define(two())

        drain()

        assert ran == ["deep"]
        assert workflows.results(run) == {"sub": {"x": "deep"}}

    def test_one_that_is_not_stored_or_runs_in_itself_is_refused(self) -> None:
        unknown, circle = Workflow("outer"), Workflow("circle")
        unknown.sub("sub", "nowhere")
        circle.sub("sub", "circle")
        workflows.define(circle)

        with pytest.raises(WorkflowNotFound):
            workflows.start(unknown)
        with pytest.raises(WorkflowInvalid, match=r"runs .circle. in itself"):
            workflows.start(circle)


class TestControl:
    def test_a_run_is_cancelled_with_who_and_why(self) -> None:
        run = workflows.start(two()).id

        with audit.acting("ann", "dashboard"):
            facts = workflows.cancel(run, reason="wrong day")

        assert (facts.cancelled["by"], facts.cancelled["reason"]) == ("ann", "wrong day")
        assert facts.state == "cancelled"
        assert states(run) == {"a": "cancelled", "b": "cancelled"}
        assert actions()[0] == ("workflow_run.cancel", run, "wrong day")
        with pytest.raises(WrongState):
            workflows.cancel(run)
        with pytest.raises(RunNotFound):
            workflows.cancel("nobody")

    def test_a_paused_run_does_nothing_until_it_is_resumed(self) -> None:
        run = workflows.start(two()).id
        workflows.pause(run, reason="look first", by="ann")

        drain()

        assert ran == []  # although a had become a job before
        assert workflows.get(run).paused["by"] == "ann"
        assert workflows.resume(run).paused is None
        drain()
        assert ran == ["a", "b"]
        assert [action for action, *_ in actions()][:2] == ["workflow_run.resume", "workflow_run.pause"]

    def test_what_would_run_again_is_listed_before_it_does(self) -> None:
        run = workflows.start(two()).id
        drain()
        assert workflows.get(run).state == "failed"

        assert workflows.retry_plan(run).again == ("b",)
        assert workflows.retry_plan(run, "a") == (("a",), ("b",), ())
        assert workflows.retry(run).state == "running"
        drain()

        assert ran == ["a", "b", "b"]
        assert workflows.get(run).state == "succeeded"
        with pytest.raises(WrongState, match="no node has failed"):
            workflows.retry(run)

    def test_a_run_has_a_time_limit_that_begins_anew_with_a_retry(self) -> None:
        run = workflows.start(two(timeout=timedelta(hours=1)))

        assert run.deadline_ms == pytest.approx(run.created_at_ms + 3_600_000, abs=5_000)
        assert run.as_dict()["deadline"].endswith("Z")


class TestWaits:
    def flow(self) -> Workflow:
        flow = Workflow("waits")
        paid = flow.signal("paid", "payment")
        go = flow.approval("go", "Ship it?", {"to": "Ann"}, depends_on=paid, permission="shop.ship", timeout=60)
        flow.add("ship", step, {"name": paid.result("by")}, depends_on=[paid, go])
        return flow

    def test_who_waits_says_for_what_since_when_and_who_may_decide(self) -> None:
        run = workflows.start(self.flow()).id

        (paid,) = workflows.waiting(run)
        assert (paid.key, paid.kind, paid.what, paid.until_ms, paid.permission) == (
            "paid",
            "signal",
            "payment",
            None,
            None,
        )
        assert workflows.signal(run, "payment", {"by": "bob"}) == 1
        (go,) = workflows.waiting(run)
        assert (go.key, go.kind, go.what, go.permission, go.payload) == (
            "go",
            "approval",
            "Ship it?",
            "shop.ship",
            {"to": "Ann"},
        )
        assert go.until_ms == go.since_ms + 60_000

        workflows.approve(run, "go", by="ann", comment="fine")
        drain()

        assert ran == ["bob"]
        assert workflows.waiting(run) == []
        assert workflows.get(run).state == "succeeded"
        assert actions()[:2] == [("workflow_run.approve", run, "fine"), ("workflow_run.signal", run, "")]

    def test_a_rejection_says_who_and_why(self) -> None:
        run = workflows.start(self.flow()).id
        workflows.signal(run, "payment", {"by": "bob"})

        assert workflows.reject(run, "go", by="ann", comment="too late").state == "failed"

        error = next(view.error for view in workflows.nodes(run) if view.key == "go")
        assert error is not None
        assert (error["type"], error["message"]) == ("Rejected", "ann said no: too late")
        with pytest.raises(WrongState, match="Node 'go' is dead: it was decided before"):
            workflows.approve(run, "go")

    def test_a_refusal_says_what_is_wrong(self, settings: Any) -> None:
        run = workflows.start(self.flow()).id

        with pytest.raises(OptionInvalid, match=r"No node of run .* waits for a signal 'paymnet'") as refused:
            workflows.signal(run, "paymnet")
        assert refused.value.fix == "Did you mean 'payment'?"
        with pytest.raises(WrongState, match="Node 'go' has not been asked yet"):
            workflows.approve(run, "go")
        with pytest.raises(WorkflowInvalid, match="'paid' is a signal, and no approval"):
            workflows.approve(run, "paid")
        with pytest.raises(PayloadTooLarge):
            workflows.signal(run, "payment", "x" * 300_000)
