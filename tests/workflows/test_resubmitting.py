"""A dead node whose job is resubmitted: what was skipped, or failed, because of it opens again, and nothing else."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.job import LeasedJob
from jobs.core.states import JobState
from jobs.core.workflow import Definition, Ended, Run
from jobs.engine import Engine
from jobs.engine.workflows import new_run_id
from jobs.runtime import controlling
from jobs.store.keys import RunKeys
from tests.support.graphs import FAILURES, SUCCEEDED, random_nodes
from tests.support.runs import Runs

WHY = {"by": "ann", "at": "2026-01-01T00:00:00.000Z", "reason": "wrong day"}
ABC = [{"key": key} for key in "abc"]


def resubmit(runs: Runs, run: str, key: str) -> LeasedJob:
    """The job of a dead node lives again, and its run hears of it."""
    job_id = runs.nodes(run)[key].job or ""
    runs.engine.jobs.resubmit(job_id)
    runs.relay.tell_of([job_id])
    (leased,) = runs.lease()
    return leased


def end_unheard(runs: Runs, run: str, key: str, outcome: str = "succeeded") -> None:
    """The same, and it ends again before its run hears of anything: both are one piece of news."""
    runs.engine.jobs.resubmit(runs.nodes(run)[key].job or "")
    (leased,) = runs.lease()
    runs.end(leased, outcome)


def test_a_failure_that_was_mended_before_its_run_heard_counts_no_more(runs: Runs) -> None:
    run = runs.start(*ABC[:2], {"key": "alarm", "on_failure": ["a", "b"]})
    jobs = {job.extras["node"]: job for job in runs.lease()}
    runs.end(jobs["a"], "dead")

    end_unheard(runs, run, "a")
    assert runs.states(run)["alarm"] == "skipped"
    runs.end(jobs["b"], "dead")

    assert (runs.states(run)["alarm"], runs.lease()) == ("skipped", [])


def test_a_success_that_came_before_its_run_heard_of_a_second_try_opens_what_waited_for_it(runs: Runs) -> None:
    run = runs.start(*ABC[:2], {"key": "c", "depends_on": ["a", "b"]})
    jobs = {job.extras["node"]: job for job in runs.lease()}
    runs.end(jobs["a"], "dead")
    assert runs.states(run)["c"] == "skipped"

    end_unheard(runs, run, "a")
    assert runs.states(run)["c"] == "blocked"
    runs.end(jobs["b"])

    assert [job.extras["node"] for job in runs.lease()] == ["c"]


def test_a_failure_counts_no_more_while_its_node_lives_again(runs: Runs) -> None:
    run = runs.start(*ABC[:2], {"key": "alarm", "on_failure": ["a", "b"]}, {"key": "c", "depends_on": ["a", "b"]})
    jobs = {job.extras["node"]: job for job in runs.lease()}
    runs.end(jobs["a"], "dead")

    again = resubmit(runs, run, "a")
    assert (runs.states(run)["alarm"], runs.states(run)["c"]) == ("blocked", "blocked")
    runs.end(jobs["b"], "dead")
    assert (runs.states(run)["alarm"], runs.states(run)["c"]) == ("blocked", "skipped")
    runs.end(again, "dead")

    assert [job.extras["node"] for job in runs.lease()] == ["alarm"]


def test_the_error_of_a_life_that_is_over_is_not_shown(runs: Runs) -> None:
    run = runs.start({"key": "a"})
    runs.run_all({"a": "dead"})
    assert runs.nodes(run)["a"].error

    again = resubmit(runs, run, "a")
    assert runs.nodes(run)["a"].error is None
    runs.end(again, "dead")
    end_unheard(runs, run, "a")

    assert runs.nodes(run)["a"].error is None


def test_the_result_of_a_life_that_is_over_reaches_nobody(runs: Runs) -> None:
    """Neither that of a job nor the decision of a person."""
    run = runs.start({"key": "a"}, {"key": "go", "type": "", "approval": "Go?"})
    runs.run_all(a=1)
    runs.engine.run_control.decide(run, "go", result="yes")
    assert {key: end.result for key, end in ends(runs, run).items()} == {"a": 1, "go": "yes"}

    for node in ("a", "go"):
        controlling.retry(runs.relay, run, node)
    runs.run_all({"a": "dead"})
    runs.engine.run_control.decide(run, "go", error={"type": "Rejected"})

    assert {key: end.result for key, end in ends(runs, run).items()} == {"a": None, "go": None}


def test_children_that_are_told_in_parts_hear_all_of_a_parent_that_lives_again_meanwhile(runs: Runs) -> None:
    children = [f"alarm-{number}" for number in range(6)]
    run = runs.start(*ABC[:2], *({"key": key, "on_failure": ["a", "b"]} for key in children))
    jobs = {job.extras["node"]: job for job in runs.lease()}
    runs.end(jobs["a"], "dead", tell=False)
    runs.engine.workflows.step(run, runs.engine.outbox.read(jobs["a"].route, [jobs["a"].id]), limit=4)

    resubmit(runs, run, "a")
    runs.end(jobs["b"], "dead", tell=False)
    runs.engine.workflows.step(run, runs.engine.outbox.read(jobs["b"].route, [jobs["b"].id]), limit=4)
    runs.tell([jobs["b"]])

    assert {runs.states(run)[key] for key in children} == {"blocked"}
    assert not any(field.startswith(b"told:") for field in fields(runs, run)), "a place is kept for nobody"


def ends(runs: Runs, run: str) -> dict[str, Ended]:
    return runs.engine.workflows.parents(run, ["a", "go"])


def fields(runs: Runs, run: str) -> list[bytes]:
    """What the run keeps of itself."""
    store = runs.engine.store
    found: list[bytes] = store.client.hkeys(RunKeys(store.namespace, run).run)  # type: ignore[assignment]
    return found


def test_a_join_of_at_least_two_opens_again_and_waits_for_the_second(runs: Runs) -> None:
    run = runs.start(*ABC, {"key": "d", "depends_on": ["a", "b", "c"], "join": 2})
    jobs = {job.extras["node"]: job for job in runs.lease()}
    runs.end(jobs["a"], "dead")
    assert runs.states(run)["d"] == "blocked"
    runs.end(jobs["b"], "dead")
    assert runs.states(run)["d"] == "skipped"

    runs.end(resubmit(runs, run, "a"))
    assert runs.states(run)["d"] == "blocked"
    runs.end(jobs["c"])

    assert [job.extras["node"] for job in runs.lease()] == ["d"]


def test_a_join_that_is_still_given_up_stays_so(runs: Runs) -> None:
    run = runs.start(*ABC, {"key": "d", "depends_on": ["a", "b", "c"]}, {"key": "e", "on_failure": ["a", "b"]})
    runs.run_all({"a": "dead", "b": "dead"})

    runs.end(resubmit(runs, run, "a"))

    states = runs.states(run)
    assert (states["d"], states["e"]) == ("skipped", "succeeded")
    assert runs.facts(run).state == "succeeded"  # b is dead, and e dealt with it


def test_a_join_of_any_that_ran_because_of_another_does_not_run_again(runs: Runs) -> None:
    run = runs.start(*ABC, {"key": "d", "depends_on": ["a", "b"], "join": "any"})
    runs.run_all({"a": "dead"})

    runs.end(resubmit(runs, run, "a"))
    runs.run_all()

    assert runs.ran.count("d") == 1
    assert runs.facts(run).state == "succeeded"


def test_in_a_cancelled_run_it_ends_and_nothing_starts_because_of_it(runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b"}, {"key": "c", "depends_on": ["a"]}, {"key": "d", "depends_on": ["b"]})
    jobs = {job.extras["node"]: job for job in runs.lease()}
    runs.end(jobs["a"], "dead")
    controlling.cancel(runs.relay, run, WHY)
    runs.end(jobs["b"], "cancelled")
    before = runs.states(run)

    again = resubmit(runs, run, "a")
    assert runs.facts(run).state == "running"
    runs.end(again)

    assert runs.lease() == []
    assert runs.states(run) == {**before, "a": "succeeded"}
    assert runs.facts(run).state == "cancelled"


def test_a_group_lives_again_with_its_member_and_so_does_what_came_after_it(runs: Runs) -> None:
    inner = {"name": "inner", "nodes": [{"key": "x", "type": "t"}, {"key": "y", "type": "t", "depends_on": ["x"]}]}
    run = runs.start(
        {"key": "sub", "type": "", "workflow": inner, "each": [1, 2]}, {"key": "after", "depends_on": ["sub"]}
    )
    runs.run_all({"sub:0:x": "dead"})
    assert (runs.states(run)["sub"], runs.states(run)["after"]) == ("dead", "skipped")

    again = resubmit(runs, run, "sub:0:x")
    stands = [runs.states(run)[key] for key in ("sub", "sub:0", "sub:0:y", "after")]
    assert stands == ["ready", "ready", "blocked", "blocked"]
    runs.end(again)
    runs.run_all()

    assert set(runs.states(run).values()) == {"succeeded"}
    assert runs.ran.count("sub:1:x") == 1


def test_a_node_that_could_be_no_job_because_its_parent_was_dead_becomes_one_when_it_is_not(runs: Runs) -> None:
    run = runs.start(
        {"key": "a"},
        {"key": "b", "on_complete": ["a"], "payload": {"rows": {"$from": "a.result.rows"}}},
        {"key": "page", "on_complete": ["a"], "each": {"$from": "a.result.rows"}},
        {"key": "c", "depends_on": ["b", "page"]},
        {"key": "alarm", "on_failure": ["b"]},
    )
    runs.run_all({"a": "dead"})
    assert runs.states(run) == {"a": "dead", "b": "dead", "page": "dead", "c": "skipped", "alarm": "succeeded"}

    again = resubmit(runs, run, "a")
    states = runs.states(run)
    assert (states["b"], states["page"], states["c"]) == ("blocked", "blocked", "blocked")
    runs.end(again, result={"rows": [1, 2]})
    runs.run_all()

    assert runs.facts(run).state == "succeeded"
    assert runs.ran == ["a", "alarm", "a", "b", "page:0", "page:1", "c"]


def test_one_that_dies_again_leaves_all_as_it_was(runs: Runs) -> None:
    run = runs.start(
        {"key": "a"},
        {"key": "b", "on_complete": ["a"], "payload": {"rows": {"$from": "a.result.rows"}}},
        {"key": "c", "depends_on": ["a"]},
    )
    runs.run_all({"a": "dead"})
    before = runs.states(run)

    runs.end(resubmit(runs, run, "a"), "dead")

    assert (runs.states(run), runs.facts(run).state) == (before, "failed")


def test_of_a_run_that_is_forgotten_it_is_a_job_like_any_other(runs: Runs, engine: Engine) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    runs.run_all({"a": "dead"})
    job_id = runs.nodes(run)["a"].job or ""
    engine.workflows.remove(run)

    engine.jobs.resubmit(job_id)
    runs.relay.tell_of([job_id])
    (again,) = runs.lease()
    runs.end(again)

    assert engine.jobs.get(job_id).state == "succeeded"
    assert engine.outbox.routes_with_news(engine.topology.partitions()) == []
    assert engine.workflows.find(run) is None


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 25))
def test_whatever_is_resubmitted_a_run_stands_as_the_rules_say(engine: Engine, seed: int, count: int) -> None:
    random, runs, run = Random(seed), Runs(engine), new_run_id()
    nodes = random_nodes(random, count)
    runs.relay.start(run, Definition(name="storm", nodes=tuple(nodes)), {"payload": {}})
    rules = Run(nodes)
    rules.start()
    held: list[LeasedJob] = []
    for _ in range(2 * count):
        held += (job for job in runs.lease() if job.extras["workflow_run"] == run)
        failed = sorted(key for key, state in rules.ended.items() if state in FAILURES and key in rules.released)
        if failed and random.random() < 0.4:
            key = random.choice(failed)
            job_id = runs.nodes(run)[key].job or ""
            engine.jobs.resubmit(job_id)
            runs.relay.tell_of([job_id])
            rules.note(key, JobState.READY)
        elif held:
            leased = held.pop(random.randrange(len(held)))
            outcome = random.choice([SUCCEEDED, *FAILURES])
            runs.end(leased, outcome)
            rules.note(leased.extras["node"], outcome)
        else:
            break
        stands = {key: "ready" if key in rules.released else "blocked" for key in rules.graph.nodes}
        assert runs.states(run) == {**stands, **rules.ended}
        assert runs.facts(run).state == rules.state
    for leased in held:
        runs.end(leased)
