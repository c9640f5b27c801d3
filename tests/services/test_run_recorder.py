"""The history of runs: a row for each that has ended, as it ended last, for as long as the settings say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError
from django.utils import timezone

from jobs import Workflow, job, workflows
from jobs.engine import Engine
from jobs.engine.workflows import Workflows
from jobs.models import RunRecord
from jobs.registry import registry
from jobs.services import run_recorder
from jobs.services.run_recorder import RunRecorder
from tests.support.clock import ManualClock
from tests.support.runs import Runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs(engine: Engine) -> Runs:
    return Runs(engine)


@pytest.fixture
def step() -> Iterator[None]:
    with registry.restored():

        @job("test.node")
        def node() -> None: ...

        yield


def ended(runs: Runs, *, outcome: str = "succeeded", **facts: Any) -> str:
    """A run of two nodes that has ended."""
    run_id = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    runs.run_all({"b": outcome})
    return run_id


def test_runs_that_have_ended_are_written_down_once(runs: Runs) -> None:
    recorder = RunRecorder(runs.engine)
    good, bad = ended(runs), ended(runs, outcome="dead")
    runs.start({"key": "a"})

    assert recorder.tick()["recorded"] == 2
    assert recorder.tick()["recorded"] == 0
    assert RunRecorder(runs.engine).tick()["recorded"] == 0

    rows = {row.run: row for row in RunRecord.objects.all()}
    assert {run: row.state for run, row in rows.items()} == {good: "succeeded", bad: "failed"}
    facts = runs.facts(good)
    assert (rows[good].workflow, rows[good].nodes) == ("test", 2)
    assert (rows[good].created_at, rows[good].finished_at) == (facts.created_at, facts.finished_at)
    assert rows[good].seconds == facts.seconds


def test_one_that_ends_again_has_its_row_changed(runs: Runs, clock: ManualClock) -> None:
    recorder = RunRecorder(runs.engine)
    run_id = ended(runs, outcome="dead")
    recorder.tick()
    clock.advance(30)
    job_id = runs.nodes(run_id)["b"].job
    assert job_id is not None
    runs.engine.jobs.resubmit(job_id)
    runs.relay.tell(runs.engine.topology.partitions()[0], [job_id])
    runs.run_all()

    assert recorder.tick()["recorded"] == 1

    row = RunRecord.objects.get(run=run_id)
    assert (row.state, row.finished_at) == ("succeeded", runs.facts(run_id).finished_at)


def test_a_host_that_starts_goes_on_where_the_rows_end(runs: Runs, clock: ManualClock) -> None:
    ended(runs)
    RunRecorder(runs.engine).tick()
    clock.advance(3_600)
    late = ended(runs)

    assert RunRecorder(runs.engine).tick()["recorded"] == 1
    assert RunRecord.objects.first().run == late  # type: ignore[union-attr]


def test_more_of_one_moment_than_a_page_holds_are_all_written(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_recorder, "BATCH", 2)
    ids = {ended(runs) for _ in range(5)}  # the clock stands still

    RunRecorder(runs.engine).tick()

    assert set(RunRecord.objects.values_list("run", flat=True)) == ids


def test_an_idle_tick_reads_no_old_runs(runs: Runs, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = RunRecorder(runs.engine)
    ended(runs)
    recorder.tick()
    clock.advance(120)
    recorder.tick()
    read: list[int] = []
    real = Workflows.ended

    def noting(self: Workflows, since_ms: int, limit: int = 100) -> Any:
        found = real(self, since_ms, limit)
        read.append(len(found))
        return found

    monkeypatch.setattr(Workflows, "ended", noting)
    recorder.tick()

    assert read == [0]


def test_a_database_that_is_away_only_delays(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = RunRecorder(runs.engine)
    ended(runs)
    with monkeypatch.context() as broken:
        broken.setattr(RunRecord.objects, "filter", lambda **_: (_ for _ in ()).throw(DatabaseError("away")))
        assert recorder.tick()["recorded"] == 0

    assert recorder.tick()["recorded"] == 1


def test_rows_past_their_retention_go(runs: Runs) -> None:
    old = timezone.now() - timedelta(seconds=runs.engine.settings.run_records_seconds + 60)
    facts: dict[str, Any] = {"workflow": "w", "state": "failed", "seconds": 1.0, "nodes": 1}
    RunRecord.objects.create(run="old", created_at=old, finished_at=old, **facts)
    RunRecord.objects.create(run="new", created_at=old, finished_at=timezone.now(), **facts)

    assert RunRecorder(runs.engine).tick()["pruned"] == 1
    assert [row.run for row in RunRecord.objects.all()] == ["new"]


# What people are told of it ------------------------------------------------------------------------------------------


def record(name: str, state: str, seconds: float, *, days_ago: float = 0, number: int = 0) -> None:
    at = timezone.now() - timedelta(days=days_ago, seconds=number)
    RunRecord.objects.create(
        run=f"{name}-{state}-{days_ago}-{number}",
        workflow=name,
        version=1,
        state=state,
        created_at=at - timedelta(seconds=seconds),
        finished_at=at,
        seconds=seconds,
        nodes=3,
    )


def test_each_workflow_says_how_often_it_succeeds_and_how_long_it_takes(step: None) -> None:
    flow = Workflow("nightly")
    flow.add("a", "test.node")
    workflows.define(flow, description="Each night.")
    for number in range(3):
        record("nightly", "succeeded", 20.0, number=number)
        record("nightly", "succeeded", 10.0, days_ago=2, number=number)
    record("nightly", "failed", 1.0, days_ago=2)
    record("nightly", "failed", 1.0, days_ago=40)
    record("nightly", "cancelled", 500.0)
    record("adhoc", "succeeded", 5.0)

    adhoc, nightly = workflows.definitions(days=30, runs=2)

    assert (adhoc.name, adhoc.version, adhoc.nodes, adhoc.totals.success_rate) == ("adhoc", None, None, 1.0)
    assert (nightly.version, nightly.nodes, nightly.description) == (1, 1, "Each night.")
    assert (nightly.totals.ended, nightly.totals.success_rate) == (8, pytest.approx(6 / 7))
    assert nightly.totals.median_seconds == 15.0
    assert nightly.slower == 2.0
    assert [day.totals.median_seconds for day in nightly.trend] == [10.0, 20.0]
    assert len(nightly.last) == 2
    assert nightly.as_dict()["totals"]["succeeded"] == 6


def test_a_workflow_that_never_ran_has_no_rate(step: None) -> None:
    flow = Workflow("fresh")
    flow.add("a", "test.node")
    workflows.define(flow)

    [fresh] = workflows.definitions()

    assert (fresh.totals.ended, fresh.totals.success_rate, fresh.slower) == (0, None, None)
    assert (fresh.trend, fresh.last) == ([], [])
