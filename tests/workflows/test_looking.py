"""Looking at runs: lists page by page, one run as a document, its nodes as they are now, waiting for its end."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from jobs import workflows
from jobs.exceptions import JobTimeout, OptionInvalid, RunNotFound
from tests.support.clock import ManualClock
from tests.support.runs import Runs

PAIR: list[dict[str, Any]] = [{"key": "a"}, {"key": "b", "depends_on": ["a"]}]


def pages(limit: int, **wanted: Any) -> list[list[str]]:
    """The ids of all runs, page by page."""
    found, cursor = [], None
    while True:
        page = workflows.list(limit=limit, cursor=cursor, **wanted)
        found.append([run.id for run in page.items])
        if page.next_cursor is None:
            return found
        cursor = page.next_cursor


class TestList:
    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
    def test_every_run_is_on_one_page_newest_first_whatever_the_page_holds(
        self, runs: Runs, clock: ManualClock, limit: int
    ) -> None:
        started = []
        for number in range(7):
            started.append(runs.start({"key": "a"}))
            clock.advance(0.001 if number % 2 else 0)  # some were created in one millisecond

        found = pages(limit)

        listed = [run for page in found for run in page]
        assert listed == sorted(started, reverse=True)
        assert all(len(page) == limit for page in found[:-1])

    def test_a_page_of_one_state_is_filled_from_all_runs(self, runs: Runs, clock: ManualClock) -> None:
        failed = []
        for number in range(6):
            run = runs.start({"key": "a"})
            clock.advance(1)
            if number % 2:
                failed.append(run)
                runs.run_all({"a": "dead"})
            else:
                runs.run_all()

        assert [run for page in pages(2, state="failed") for run in page] == failed[::-1]
        assert pages(2, state="running") == [[]]

    def test_runs_that_come_while_somebody_turns_the_pages_move_none(self, runs: Runs, clock: ManualClock) -> None:
        started = []
        for _ in range(4):
            started.append(runs.start({"key": "a"}))
            clock.advance(1)
        first = workflows.list(limit=2)
        runs.start({"key": "a"})

        second = workflows.list(limit=2, cursor=first.next_cursor)

        assert [run.id for run in (*first.items, *second.items)] == started[::-1]
        assert second.next_cursor is None

    def test_a_run_that_is_forgotten_meanwhile_is_left_out(self, runs: Runs, clock: ManualClock) -> None:
        started = []
        for _ in range(3):
            started.append(runs.start({"key": "a"}))
            clock.advance(1)
        page = workflows.list(limit=1)
        runs.engine.workflows.remove(started[1])

        assert [run.id for run in workflows.list(limit=5, cursor=page.next_cursor).items] == [started[0]]

    def test_by_name(self, runs: Runs) -> None:
        run = runs.start({"key": "a"})

        assert pages(5, name="test") == [[run]]
        assert pages(5, name="another") == [[]]

    @pytest.mark.parametrize("cursor", ["", "x", "12", "12.", ".x", "١٢.x", "-1.x"])
    def test_a_cursor_that_is_none_is_refused(self, runs: Runs, cursor: str) -> None:
        with pytest.raises(OptionInvalid, match="is no cursor of a list of runs"):
            workflows.list(cursor=cursor)


class TestDocument:
    def test_it_is_what_the_contract_says_and_the_result_once_it_is_over(self, runs: Runs) -> None:
        run = runs.start(*PAIR, payload={"day": "monday"})
        begun = workflows.document(run)
        runs.run_all(a={"rows": 1}, b={"rows": 2})
        ended = workflows.document(run)

        assert {"id", "name", "state", "created_at", "finished_at", "nodes"} <= begun.keys()
        assert (begun["state"], begun["finished_at"], begun["result"]) == ("running", None, None)
        assert [(node["key"], node["state"], node["job"] is None) for node in begun["nodes"]] == [
            ("a", "ready", False),
            ("b", "blocked", True),
        ]
        assert (ended["state"], ended["result"], ended["payload"]) == (
            "succeeded",
            {"b": {"rows": 2}},
            {"day": "monday"},
        )
        assert ended["counts"] == {"succeeded": 2}
        assert all(node["finished_at"].endswith("Z") and node["attempts"] == 1 for node in ended["nodes"])

    def test_a_run_that_is_not_there(self, runs: Runs) -> None:
        for look in (workflows.document, workflows.nodes, workflows.get, workflows.results, workflows.compare):
            with pytest.raises(RunNotFound):
                look("nobody")  # type: ignore[operator]


class TestNodes:
    def test_how_a_live_node_stands_is_asked_of_its_job_where_that_is_wanted(
        self, runs: Runs, clock: ManualClock
    ) -> None:
        run = runs.start(
            {"key": "waits"},
            {"key": "runs", "priority": 9},
            {"key": "later", "delay": 60},
            {"key": "retried", "priority": 5},
        )
        leased = {job.extras["node"]: job for job in runs.lease(limit=2)}
        assert runs.fail(leased["retried"], "retry", delay_ms=60_000) == "retry_wait"

        assert {view.state for view in workflows.nodes(run)} == {"ready"}
        assert {view.key: view.state for view in workflows.nodes(run, live=True)} == {
            "waits": "ready",
            "runs": "leased",
            "later": "scheduled",
            "retried": "retry_wait",
        }

    def test_they_come_in_pages_parents_first(self, runs: Runs) -> None:
        run = runs.start(
            *({"key": f"n{number}", "depends_on": [f"n{number - 1}"] if number else []} for number in range(9))
        )

        found = [[view.key for view in workflows.nodes(run, since, 4)] for since in (0, 4, 8, 12)]

        assert found == [["n0", "n1", "n2", "n3"], ["n4", "n5", "n6", "n7"], ["n8"], []]


class TestWait:
    def test_the_end_is_seen_however_it_ended(self, runs: Runs) -> None:
        run = runs.start(*PAIR)
        worker = threading.Thread(target=lambda: (time.sleep(0.05), runs.run_all({"b": "dead"})))
        worker.start()

        ended = workflows.wait(run, timeout=30)
        worker.join()

        assert ended.state == "failed"
        assert workflows.wait(run, timeout=0).state == "failed"

    def test_a_time_that_is_too_short_is_an_error_and_the_run_goes_on(self, runs: Runs) -> None:
        run = runs.start(*PAIR)

        with pytest.raises(JobTimeout, match="did not end in time"):
            workflows.wait(run, timeout=0.01)

        runs.run_all()
        assert workflows.get(run).state == "succeeded"

    def test_a_run_that_is_not_there(self, runs: Runs) -> None:
        with pytest.raises(RunNotFound):
            workflows.wait("nobody", timeout=1)

    async def test_the_twin_waits_too(self, runs: Runs) -> None:
        run = runs.start({"key": "a"})
        runs.run_all()

        assert (await workflows.await_(run, timeout=5)).state == "succeeded"

    async def test_those_who_await_runs_keep_no_thread_that_others_need(self, runs: Runs) -> None:
        run = runs.start({"key": "a"})
        waiting = [asyncio.create_task(workflows.await_(run, timeout=60)) for _ in range(60)]
        await asyncio.sleep(0)

        assert (await asyncio.wait_for(workflows.aget(run), timeout=30)).state == "running"

        for task in waiting:
            task.cancel()
        ends = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}


class TestCompare:
    def times(
        self, runs: Runs, clock: ManualClock, *nodes: dict[str, Any], seconds: dict[str, float], **more: Any
    ) -> str:
        """A run whose nodes take so long, one after the other."""
        outcomes = more.pop("outcomes", {})
        run = runs.start(*nodes, **more)
        while jobs := runs.lease():
            for job in jobs:
                node = job.extras["node"]
                runs.engine.leases.start(job.route, [(job.id, job.token, job.leased_at)])
                clock.advance(seconds.get(node, 1.0))
                runs.engine.leases.renew(job.route, [(job.id, job.token)], lease_ms=10_000)
                runs.end(job, outcomes.get(node, "succeeded"))
        clock.advance(60)
        return run

    def test_a_run_is_put_beside_the_last_one_that_succeeded_and_what_is_usual(
        self, runs: Runs, clock: ManualClock
    ) -> None:
        for seconds in (2.0, 4.0, 3.0):
            before = self.times(runs, clock, *PAIR, seconds={"a": seconds}, payload={"day": "monday", "n": 1})
        self.times(runs, clock, *PAIR, seconds={}, outcomes={"b": "dead"})
        changed = {"key": "b", "depends_on": ["a"], "payload": {"x": 1}, "max_retries": 5}
        run = self.times(
            runs,
            clock,
            PAIR[0],
            changed,
            {"key": "c"},
            seconds={"a": 9.0},
            payload={"day": "friday", "n": 1, "more": []},
        )

        found = workflows.compare(run)

        assert (found.run.id, found.other.id, found.usual_of) == (run, before, 3)
        assert [difference.as_dict() for difference in found.payload] == [
            {"path": "day", "before": "monday", "after": "friday"},
            {"path": "more", "after": []},
        ]
        a, c, b = found.nodes
        assert (a.key, a.seconds, a.seconds_before, a.usual, a.times) == ("a", 9.0, 3.0, 3.0, 3.0)
        assert (b.changed, b.state, b.state_before, b.times) == (
            ("payload", "max_retries"),
            "succeeded",
            "succeeded",
            None,
        )
        assert (c.state_before, c.usual) == (None, None)
        assert [node.key for node in found.news] == ["a", "c", "b"]

    def test_with_another_that_is_named(self, runs: Runs, clock: ManualClock) -> None:
        failed = self.times(runs, clock, *PAIR, {"key": "old"}, seconds={}, outcomes={"a": "dead"})
        run = self.times(runs, clock, *PAIR, seconds={})

        found = {node.key: node for node in workflows.compare(run, failed).nodes}

        assert (found["a"].state, found["a"].state_before, found["a"].usual) == ("succeeded", "dead", None)
        assert (found["old"].state, found["old"].state_before) == (None, "succeeded")
        assert found["b"].is_news

    def test_with_none_before_it_there_is_nothing_to_compare(self, runs: Runs, clock: ManualClock) -> None:
        run = self.times(runs, clock, *PAIR, seconds={})
        self.times(runs, clock, *PAIR, seconds={})

        with pytest.raises(OptionInvalid, match="No run of test before this one has succeeded"):
            workflows.compare(run)

    def test_nothing_different_is_no_news(self, runs: Runs, clock: ManualClock) -> None:
        self.times(runs, clock, *PAIR, seconds={})
        run = self.times(runs, clock, *PAIR, seconds={})

        assert workflows.compare(run).news == []
