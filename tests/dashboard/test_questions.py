"""The five questions of an operator: for each a fault is made, and the overview answers it in words."""

from __future__ import annotations

import re
import threading

import pytest
from django.test import Client

from dashboard import questions, standing
from dashboard.overall import Overall
from tests.dashboard.browsing import text
from tests.dashboard.seeding import Shop


def answer(viewer: Client, question: str) -> str:
    """What stands on the overview after a question and before the next one."""
    words = text(viewer.get("/dashboard/"))
    asked = [found.question for found in questions.answers(Overall())]
    assert question in asked
    later = [words.find(other) for other in asked if words.find(other) > words.find(question)]
    return words[words.find(question) + len(question) : min(later, default=None)]


def test_is_anything_running_jobs_without_a_worker(viewer: Client, shop: Shop) -> None:
    shop.ready()

    assert "No no worker is alive" in answer(viewer, "Is anything running jobs?")


def test_is_anything_late_with_a_job_that_waits_too_long(
    viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "LATE_SECONDS", -1.0)
    shop.ready(pool="reports")
    shop.worker(pools={"reports": 1})

    assert re.search(r"\d+ s oldest in reports", answer(viewer, "Is anything late?"))


def test_what_failed_with_dead_jobs_and_one_that_will_be_retried(viewer: Client, shop: Shop) -> None:
    shop.dead()
    shop.dead()
    shop.retry_wait()

    assert "2 jobs 1 failed and will be retried" in answer(viewer, "What failed for good?")


def test_when_do_the_pools_drain_with_one_that_nobody_serves(viewer: Client, shop: Shop) -> None:
    shop.ready(pool="reports")

    assert "Never reports never" in answer(viewer, "When do the pools drain?")


def test_how_fast_are_we_with_slots_that_do_nothing(viewer: Client, shop: Shop) -> None:
    shop.worker(pools={"default": 4})
    shop.leased()

    assert "jobs/s 1 of 4 slots busy" in answer(viewer, "How fast are we?")


def test_the_nine_counters_add_up_to_the_jobs_there_are_while_they_move(viewer: Client, shop: Shop) -> None:
    jobs = shop.many(200)
    over = threading.Event()

    def move() -> None:
        while not over.is_set():
            for job_id in jobs[:20]:
                shop.engine.jobs.cancel(job_id)
            for job_id in jobs[:20]:
                shop.engine.jobs.resubmit(job_id)

    moving = threading.Thread(target=move)
    moving.start()
    try:
        sums = {sum(map(int, counters(viewer))) for _ in range(40)}
    finally:
        over.set()
        moving.join()

    assert sums == {len(jobs)}


def counters(viewer: Client) -> list[str]:
    figures = viewer.get("/dashboard/snapshot/").json()["figures"]
    found = [text for key, text in figures.items() if key.startswith("states.")]
    assert len(found) == 9
    return found
