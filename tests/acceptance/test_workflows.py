"""Runs of workflows on real hosts."""

from __future__ import annotations

import pytest

from jobs import Workflow, workflows
from tests.acceptance.hosts import StartHost

pytestmark = pytest.mark.acceptance


def test_a_burst_runs_a_whole_workflow_and_hands_results_from_parents_to_children(start_host: StartHost) -> None:
    flow = Workflow("nightly")
    flow.add("extract", "test.echo", {"value": flow.payload("day")})
    flow.add("broken", "test.fail", pool="background", max_retries=0)
    flow.add("copy", "test.echo", {"value": {"$from": "extract.result"}}, depends_on="extract", priority=7)
    flow.add("gather", "test.parents", depends_on=["extract", "copy"], pool="critical")
    flow.add("gather_async", "test.parents_async", depends_on="copy")
    flow.add("alarm", "test.echo", {"value": {"$from": "broken.error.message"}}, on_failure="broken")
    flow.add("never", "test.nothing", depends_on="broken")
    run = workflows.start(flow, {"day": "2026-01-01"}, allow_unknown=True)

    host = start_host("--burst")

    assert host.wait() == 0
    ended = workflows.get(run.id)
    assert ended.state == "succeeded"
    assert workflows.results(run.id) == {
        "gather": {"extract": "2026-01-01", "copy": "2026-01-01"},
        "gather_async": {"copy": "2026-01-01"},
        "alarm": "no luck",
    }
    assert ended.counts == {"succeeded": 5, "dead": 1, "skipped": 1, "ready": 0, "blocked": 0}
