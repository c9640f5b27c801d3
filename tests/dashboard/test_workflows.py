"""The pages of workflows: what runs, how one run stands and why, as a picture, a line of time and a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from django.test import Client
from django.utils import timezone

from dashboard import reads
from dashboard.workflows import shapes
from jobs.models import RunRecord
from tests.dashboard.browsing import tags, text
from tests.dashboard.run_pages import NIGHTLY, boxes, links, page_of, rows
from tests.support.runs import Runs

MARK = "<script>alert(1)</script>"


def fan(number: int) -> list[dict[str, Any]]:
    pages = [{"key": f"page:{each}", "depends_on": ["extract"]} for each in range(number)]
    return [{"key": "extract"}, *pages, {"key": "merge", "depends_on": [page["key"] for page in pages]}]


class TestList:
    def test_with_no_run_it_says_how_to_start_one(self, viewer: Client) -> None:
        words = text(viewer.get("/dashboard/workflows/"))

        assert "No workflow has run yet." in words
        assert "workflows start --file nightly.json" in words

    def test_a_run_is_a_row_with_state_progress_and_what_failed(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(*NIGHTLY[:2])
        runs.run_all({"extract": "dead"})

        words = text(viewer.get("/dashboard/workflows/"))

        assert run[:12] in words
        assert re.search("failed test .* 2/2 .* extract: ValueError: extract failed", words)

    def test_each_workflow_is_a_row_with_its_success_rate_usual_time_last_runs_and_trend(self, viewer: Client) -> None:
        reads.forget()
        now = timezone.now()
        for number in range(8):
            ended = now - timedelta(days=number, hours=1)
            state, seconds = ("failed", 1.0) if number == 1 else ("succeeded", 30.0 if number < 4 else 10.0)
            RunRecord.objects.create(
                run=f"run-{number}",
                workflow="nightly",
                state=state,
                created_at=ended - timedelta(seconds=seconds),
                finished_at=ended,
                seconds=seconds,
                nodes=5,
            )

        response = viewer.get("/dashboard/workflows/")

        assert re.search(r"nightly started from code.* 87.5 % of 8 .* 3 times slower lately", text(response))
        labels = [str(found.get("aria-label")) for tag, found in tags(response) if tag == "svg"]
        assert "Last 8 runs: 7 succeeded, 1 failed." in labels
        assert "Usual time by day: 10 s at first, 30 s at last, 30 s at most" in labels

    def test_it_is_narrowed_by_name_and_state(self, viewer: Client, runs: Runs) -> None:
        failed, running = runs.start({"key": "a"}), runs.start({"key": "b", "pool": "other"})
        runs.run_all({"a": "dead", "b": "dead"})
        running = runs.start({"key": "c"})

        def shown(query: str) -> list[str]:
            found = tags(viewer.get(f"/dashboard/workflows/?{query}"))
            keys = [str(attributes.get("data-key", "")) for tag, attributes in found if tag == "tr"]
            return [key.removeprefix("run ") for key in keys if key.startswith("run ")]

        assert shown("state=running") == [running]
        assert failed in shown("state=failed")
        assert shown("name=other") == []
        assert len(shown("name=test")) == 3


class TestRun:
    def test_one_that_is_not_there_is_a_404_that_says_so(self, viewer: Client) -> None:
        response = viewer.get(page_of("gone"))

        assert response.status_code == 404
        assert "There is no such run" in text(response)

    def test_it_says_how_it_stands_and_why_nodes_wait(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(*NIGHTLY)
        runs.lease()

        words = text(viewer.get(page_of(run)))

        assert "0 of 5 nodes have ended" in words
        assert "Waits for extract (" in words
        assert "Waits for load (waits itself) to end." in words
        assert "if extract or load fails" in words

    def test_it_says_what_failed_and_what_was_skipped_because_of_it(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(*NIGHTLY[:3])
        runs.run_all({"extract": "dead"})

        words = text(viewer.get(page_of(run)))

        assert "extract is dead: ValueError: extract failed. 2 nodes were skipped." in words
        assert "Skipped: extract is dead, and it runs only after its success." in words

    def test_one_that_succeeded_all_the_same_says_that_a_failure_was_dealt_with(
        self, viewer: Client, runs: Runs
    ) -> None:
        run = runs.start(*NIGHTLY)
        runs.run_all({"load": "dead"})

        assert "load is dead, which other nodes dealt with." in text(viewer.get(page_of(run)))

    def test_every_node_is_a_box_that_says_its_state_in_words_and_leads_to_what_is_known_of_it(
        self, viewer: Client, runs: Runs
    ) -> None:
        run = runs.start(*NIGHTLY)
        runs.run_all({"load": "dead"})

        found = boxes(viewer.get(page_of(run)))

        assert set(found) == {"extract", "load", "ok", "alarm", "clean"}
        assert re.match("load: dead.*ValueError: load failed", str(found["load"]["aria-label"]))
        assert "is-dead" in str(found["load"]["class"])
        words = text(viewer.get(str(found["ok"]["href"])))
        assert "Skipped: load is dead, and it runs only after its success." in words

    def test_the_nodes_that_its_length_was_made_of_are_marked(self, viewer: Client, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        runs.run_all()

        response = viewer.get(page_of(run))

        assert all("is-critical" in str(box["class"]) for box in boxes(response).values())
        assert any(
            tag == "path" and "is-critical" in str(found.get("class")) and found["data-from"] == "a"
            for tag, found in tags(response)
        )

    def test_a_chosen_node_shows_its_job_parents_and_result(self, viewer: Client, runs: Runs) -> None:
        run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
        runs.run_all(a={"rows": 12})

        words = text(viewer.get(page_of(run, "?node=a")))

        assert re.search(r'"rows": 12', words)
        assert runs.nodes(run)["a"].job in viewer.get(page_of(run, "?node=a")).content.decode()

    def test_hostile_words_in_the_address_are_only_text(self, viewer: Client, runs: Runs) -> None:
        run = runs.start({"key": "a"})
        for word in ("node", "box", "scope", "plan", "state", "page", "view", "against"):
            response = viewer.get(page_of(run), {"view": "compare", word: MARK})

            assert response.status_code == 200, word
            assert MARK not in response.content.decode()

    def test_its_fragment_is_what_the_page_shows(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(*NIGHTLY)
        address = next(
            str(found["data-fragment"])
            for tag, found in tags(viewer.get(page_of(run, "?node=load&view=table")))
            if "data-fragment" in found
        )

        fragment = viewer.get(address)

        assert urlsplit(address).path == "/dashboard/fragments/run/"
        assert rows(fragment) == ["extract", "load", "ok", "alarm", "clean"]
        assert "Waits for extract" in text(fragment)
        assert viewer.get("/dashboard/fragments/run/?id=gone").status_code == 404


class TestViews:
    def test_the_line_of_time_has_a_row_for_each_node_that_was_released(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(*NIGHTLY[:3])
        runs.run_all({"extract": "dead"})

        response = viewer.get(page_of(run, "?view=timeline"))

        keys = [found["data-key"] for tag, found in tags(response) if tag == "li" and "data-key" in found]
        assert keys == ["row extract"]
        assert "2 nodes have no row" in text(response)

    def test_the_table_can_be_narrowed_to_a_state(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(*NIGHTLY)
        runs.run_all({"load": "dead"})

        assert rows(viewer.get(page_of(run, "?view=table&state=skipped"))) == ["ok"]

    def test_the_table_stands_in_the_same_page_as_the_picture(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(*NIGHTLY)
        response = viewer.get(page_of(run))

        assert set(boxes(response)) == set(rows(response))


class TestCompare:
    def test_a_run_is_put_beside_the_last_one_that_succeeded(self, viewer: Client, runs: Runs) -> None:
        before = runs.start(*NIGHTLY, payload={"day": "monday"})
        runs.run_all()
        run = runs.start(*NIGHTLY[:3], {**NIGHTLY[3], "priority": 5}, {"key": "new"}, payload={"day": "friday"})
        runs.run_all({"load": "dead"})
        address = next(link for link in links(viewer.get(page_of(run))) if "view=compare" in link)

        response = viewer.get(address)

        words = text(response)
        assert "3 nodes ended otherwise, 1 node is new, 1 node is not there any more." in words
        assert 'day "monday" → "friday"' in words
        assert "its priority changed" in words
        assert rows(response, "beside ") == ["new", "load", "ok", "alarm", "clean"]
        assert any(link == page_of(before) for link in links(response))
        assert "1 node is as before." in words

    def test_another_can_be_chosen(self, viewer: Client, runs: Runs) -> None:
        failed = runs.start(*NIGHTLY)
        runs.run_all({"extract": "dead", "alarm": "dead"})
        run = runs.start(*NIGHTLY)
        runs.run_all()

        nothing = text(viewer.get(page_of(run, "?view=compare")))
        chosen = viewer.get(page_of(run, f"?view=compare&against={failed}"))

        assert "No run of test before this one has succeeded. Name a run to compare it with." in nothing
        assert [found["value"] for tag, found in tags(chosen) if tag == "option" and "selected" in found] == [failed]
        assert "4 nodes ended otherwise" in text(chosen)
        assert "There is no run" in text(viewer.get(page_of(run, "?view=compare&against=gone")))

    def test_nothing_different_says_so(self, viewer: Client, runs: Runs) -> None:
        for _ in range(2):
            run = runs.start(*NIGHTLY)
            runs.run_all()

        words = text(viewer.get(page_of(run, "?view=compare")))

        assert "All nodes ended as before, in about the usual time." in words
        assert "5 nodes are as before." in words


class TestManyNodes:
    def test_a_large_fan_out_is_one_box_with_counts_whose_nodes_are_in_the_table(
        self, viewer: Client, runs: Runs
    ) -> None:
        run = runs.start(*fan(120))
        runs.run_all(lambda node: "dead" if node == "page:7" else "succeeded")

        response = viewer.get(page_of(run))
        stack = boxes(response)["page:0"]

        assert set(boxes(response)) == {"extract", "page:0", "merge"}
        assert stack["aria-label"] == "120 nodes page: 1 dead, 119 succeeded"
        opened = viewer.get(str(stack["href"]))
        assert "page ×120" in text(opened)
        assert "page:7 dead" in text(opened)
        assert len(rows(opened)) == 100

    def test_the_page_of_a_large_run_costs_as_many_elements_and_few_round_trips(
        self, viewer: Client, runs: Runs, round_trips: Callable[[Callable[[], Any]], int]
    ) -> None:
        run = runs.start(*fan(3_000))

        taken = round_trips(lambda: viewer.get(page_of(run)))

        assert taken <= 50
        assert len(tags(viewer.get(page_of(run)))) <= 2_000

    def test_runs_of_one_shape_share_one_picture(self, runs: Runs, viewer: Client) -> None:
        one, other = runs.start(*NIGHTLY), runs.start(*NIGHTLY)

        def places(run: str) -> list[str]:
            return [str(found["d"]) for tag, found in tags(viewer.get(page_of(run))) if tag == "path" and "d" in found]

        before = len(shapes._kept)
        assert places(one) == places(other)
        assert len(shapes._kept) - before <= 1


class TestGroups:
    def test_a_group_is_one_box_that_opens_into_its_members(self, viewer: Client, runs: Runs) -> None:
        run = runs.start(
            {"key": "page", "each": [1, 2, 3], "payload": {"number": {"$from": "each.item"}}},
            {"key": "end", "depends_on": ["page"]},
        )
        runs.run_all(lambda node: "dead" if node == "page:1" else "succeeded")

        whole = viewer.get(page_of(run))
        assert set(boxes(whole)) == {"page", "end"}
        inside = next(link for link in links(viewer.get(str(boxes(whole)["page"]["href"]))) if "scope=page" in link)
        members = viewer.get(inside)

        assert set(boxes(members)) == {"page:0", "page:1", "page:2"}
        assert "page:1: dead" in str(boxes(members)["page:1"]["aria-label"])
