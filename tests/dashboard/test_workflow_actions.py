"""What people do to a run from its pages, and what they are asked and told."""

from __future__ import annotations

import re

from django.test import Client
from django.utils import timezone

from dashboard.workflows.course import Step
from jobs import workflows
from jobs.core.states import JobState
from jobs.core.workflow import Node, NodeView, Span
from tests.dashboard.browsing import hidden, send, tags, text
from tests.dashboard.conftest import Login
from tests.dashboard.run_pages import NIGHTLY, boxes, links, page_of
from tests.support.runs import Runs


def test_a_retry_says_first_what_would_run_again_and_outlines_it(operator: Client, runs: Runs) -> None:
    run = runs.start(*NIGHTLY)
    runs.run_all({"load": "dead"})
    address = next(link for link in links(operator.get(page_of(run))) if "plan=failed" in link)

    planned = operator.get(address)

    outlined = {key for key, box in boxes(planned).items() if "is-again" in str(box["class"])}
    assert {"load", "ok"} <= outlined
    assert "extract" not in outlined
    assert re.search(r"\d nodes would run again. load at once, then ", text(planned))
    assert runs.states(run)["load"] == "dead"

    send(operator, "/dashboard/actions/run/retry/", {"id": run, "node": "", "next": page_of(run)})

    assert runs.states(run)["load"] == "ready"
    assert runs.states(run)["extract"] == "succeeded"


def test_a_retry_from_a_node_begins_there(operator: Client, runs: Runs) -> None:
    run = runs.start(*NIGHTLY[:3])
    runs.run_all()
    address = next(link for link in links(operator.get(page_of(run, "?node=load"))) if "plan=load" in link)

    planned = text(operator.get(address))
    send(operator, "/dashboard/actions/run/retry/", {"id": run, "node": "load"})

    assert "2 nodes would run again. load at once, then ok. 1 node keeps what they did." in planned
    assert runs.states(run) == {"extract": "succeeded", "load": "ready", "ok": "blocked"}


def test_a_run_is_paused_resumed_and_cancelled_with_a_reason_that_its_page_tells(operator: Client, runs: Runs) -> None:
    run = runs.start(*NIGHTLY[:2])
    send(operator, "/dashboard/actions/run/pause/", {"id": run, "reason": "a disk is moved"})
    paused = text(operator.get(page_of(run)))
    send(operator, "/dashboard/actions/run/resume/", {"id": run})
    send(operator, "/dashboard/actions/run/cancel/", {"id": run, "reason": "not today"})

    assert "By operator: a disk is moved." in paused
    assert runs.states(run)["load"] == "cancelled"
    assert "By operator: not today." in text(operator.get(page_of(run)))


def test_an_approval_is_asked_on_the_page_and_decided_by_those_who_may(
    operator: Client, viewer: Client, runs: Runs
) -> None:
    question = {"key": "go", "approval": "Shall it go out?", "type": ""}
    run = runs.start(question, {"key": "out", "depends_on": ["go"]})
    assert "Shall it go out?" in text(viewer.get(page_of(run)))
    assert not any("run/approve" in link for link in links(viewer.get(page_of(run))))

    refused = send(viewer, "/dashboard/actions/run/approve/", {"id": run, "node": "go"}, script=True)
    assert refused.status_code == 403
    assert runs.states(run)["go"] == "ready"
    address = next(link for link in links(operator.get(page_of(run))) if "run/approve" in link)
    assert "Shall it go out?" in text(operator.get(address))
    send(operator, "/dashboard/actions/run/approve/", {"id": run, "node": "go", "reason": "looks well"})

    assert runs.states(run) == {"go": "succeeded", "out": "ready"}


def test_who_may_not_decide_may_not_do_it_before_the_question_is_asked_either(
    operator: Client, viewer: Client, runs: Runs
) -> None:
    run = runs.start({"key": "a"}, {"key": "go", "approval": "Shall it?", "type": "", "depends_on": ["a"]})
    (a,) = runs.lease()
    runs.engine.leases.start(a.route, [(a.id, a.token, a.leased_at)])
    send(operator, "/dashboard/actions/run/pause/", {"id": run, "reason": "wait"})
    runs.end(a)  # go is released, and nobody is asked while the run is paused

    refused = send(viewer, "/dashboard/actions/run/approve/", {"id": run, "node": "go"}, script=True)

    assert refused.status_code == 403
    assert runs.states(run)["go"] == "ready"


def test_a_rejected_approval_is_a_failure_that_says_who_and_why(operator: Client, runs: Runs) -> None:
    run = runs.start({"key": "go", "approval": "Shall it go out?", "type": ""})
    send(operator, "/dashboard/actions/run/reject/", {"id": run, "node": "go", "reason": "no stock"})

    assert runs.states(run) == {"go": "dead"}
    words = text(operator.get(page_of(run)))
    assert "no stock" in words


def test_it_says_of_each_kind_of_node_that_waits_for_somebody_what_it_waits_for(operator: Client, runs: Runs) -> None:
    signals = [{"key": key, "signal": key, "type": ""} for key in ("paid", "sent")]
    run = runs.start(*signals, {"key": "fit", "approval": "May it go out?", "type": ""})

    assert "fit needs approval; paid and sent await a signal." in text(operator.get(page_of(run)))


def test_a_wait_took_the_time_from_its_release_to_its_end() -> None:
    view = NodeView(key="go", rank=0, state="succeeded", node=Node(key="go", approval="Shall it go out?"))
    step = Step(view, JobState.SUCCEEDED, Span(released=1_000, ended=46_000), timezone.now())

    assert (step.took, step.line) == (45.0, "succeeded, 45 s")


def test_a_signal_ends_what_waits_for_it_and_says_when_it_is_no_json(operator: Client, runs: Runs) -> None:
    run = runs.start({"key": "paid", "signal": "payment", "type": ""})
    asked = operator.get(f"/dashboard/actions/run/signal/?id={run}")
    wrong = send(operator, "/dashboard/actions/run/signal/", {"id": run, "name": "payment", "payload": "{"})
    assert wrong.status_code == 400
    send(operator, "/dashboard/actions/run/signal/", {"id": run, "name": "payment", "payload": '{"sum": 3}'})

    assert 'value="payment"' in asked.content.decode()
    assert runs.states(run) == {"paid": "succeeded"}


def test_a_failed_node_is_skipped_with_a_name_and_a_reason(operator: Client, runs: Runs) -> None:
    run = runs.start(*NIGHTLY[:3])
    runs.run_all({"load": "dead"})
    page = operator.get(page_of(run, "?node=load"))
    asked = operator.get(next(link for link in links(page) if "/actions/run/skip/" in link))
    assert "Skip load?" in text(asked)
    assert "counts as succeeded without running" in text(asked)

    order = {"id": run, "node": "load", "payload": '{"rows": 1}', "reason": "loaded by hand"}
    send(operator, "/dashboard/actions/run/skip/", order)

    shown = operator.get(page_of(run, "?node=load"))
    assert runs.states(run) == {"extract": "succeeded", "load": "succeeded", "ok": "ready"}
    assert "Counts as succeeded: operator skipped it: loaded by hand." in text(shown)
    assert "succeeded, skipped" in str(boxes(shown)["load"]["aria-label"])
    assert not [link for link in links(shown) if "/actions/run/skip/" in link]


def test_there_is_one_loud_button_on_a_page(operator: Client, runs: Runs) -> None:
    both = runs.start({"key": "a"}, {"key": "go", "type": "", "approval": "Go?"}, {"key": "b"})
    runs.run_all({"a": "dead"})

    def loud(query: str = "") -> list[str]:
        return [
            str(found.get("href") or tag)
            for tag, found in tags(operator.get(page_of(both, query)))
            if "primary" in str(found.get("class")).split()
        ]

    (approve,) = loud()
    assert "/actions/run/approve/" in approve
    assert loud("?plan=failed") == ["button"]
    workflows.approve(both, "go")
    (retry,) = loud()
    assert "plan=failed" in retry


def test_a_start_sent_twice_is_one_run_and_with_another_payload_another(login: Login, runs: Runs) -> None:
    workflows.define({"name": "nightly", "nodes": [{"key": "go", "signal": "go"}]})
    maker, address = login("maker"), "/dashboard/actions/workflow/start/"
    question = hidden(maker.get(address, {"id": "nightly"}))

    started = [
        send(maker, address, question | {"payload": payload})["Location"]
        for payload in ('{"day": 1}', '{"day": 1}', '{"day": 2}')
    ]

    assert started[0] == started[1] != started[2]
    assert len(workflows.list(name="nightly").items) == 2


def test_who_may_only_look_sees_no_button(viewer: Client, runs: Runs) -> None:
    run = runs.start(*NIGHTLY)
    runs.run_all({"load": "dead"})

    assert not [link for link in links(viewer.get(page_of(run))) if "/actions/" in link or "plan=" in link]
