"""The five questions of an operator: for each a fault is made, and the overview answers it in words."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from django.test import Client

from dashboard import questions, reads, standing
from dashboard.day import Day
from dashboard.figures import figures
from dashboard.overall import Overall
from jobs import api
from tests.dashboard.browsing import text
from tests.dashboard.seeding import Shop

QUESTIONS = (
    "Is the scheduler alive?",
    "Is anything late?",
    "What failed in 24 hours?",
    "What failed since the deploy?",
    "When do the pools drain?",
    "Are we keeping up?",
    "Waiting",  # what comes after them
)


def answer(viewer: Client, question: str) -> str:
    """What stands on the overview after a question and before the next one."""
    words = text(viewer.get("/dashboard/"))
    assert question in words
    later = [words.find(other) for other in QUESTIONS if words.find(other) > words.find(question)]
    return words[words.find(question) + len(question) : min(later)]


def test_is_it_alive_without_a_worker(viewer: Client, shop: Shop) -> None:
    shop.ready()

    assert "No no worker is alive" in answer(viewer, "Is the scheduler alive?")


def test_is_anything_late_with_a_job_that_waits_too_long(
    viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "LATE_SECONDS", -1.0)
    shop.ready(pool="reports")
    shop.worker(pools={"reports": 1})

    assert re.search(r"\d+ s oldest in reports", answer(viewer, "Is anything late?"))


def test_what_failed_in_a_day_with_dead_jobs_and_one_that_will_be_retried(viewer: Client, shop: Shop) -> None:
    shop.dead()
    shop.dead()
    shop.retry_wait()

    assert "2 jobs 2 dead in all, 1 to be retried" in answer(viewer, "What failed in 24 hours?")


def test_what_failed_since_a_deploy_that_came_after_the_failure(viewer: Client, shop: Shop) -> None:
    shop.dead()
    day = Day(succeeded=9, died=1, release="9f3c2ab", released_at=datetime.now(UTC), died_since=0)

    found = questions.answers(replace(reads.overall(), day=day))[2]
    shop.worker(version="9f3c2ab")
    reads.forget()

    assert (found.answer, found.detail, found.mark) == ("Nothing", "9f3c2ab; 1 dead in all", "succeeded")
    assert "9f3c2ab; 1 dead in all" in answer(viewer, "What failed since the deploy?")


@pytest.mark.parametrize("off", [timedelta(minutes=-30), timedelta(minutes=30)])
def test_a_web_server_whose_clock_is_wrong_tells_the_same(
    off: timedelta, viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + off

    monkeypatch.setattr("dashboard.reads.whole.datetime", Wrong)
    shop.worker(version="9f3c2ab")
    time.sleep(0.002)  # a deploy is known by the millisecond
    shop.dead()

    day = reads.overall().day

    assert day is not None
    assert (day.died, day.died_since, day.died_by_hour[-1]) == (1, 1, 1)
    assert "1 job 9f3c2ab; 1 dead in all" in answer(viewer, "What failed since the deploy?")


def test_when_do_the_pools_drain_with_one_that_nobody_serves(viewer: Client, shop: Shop) -> None:
    shop.ready(pool="reports")

    assert "Never reports never" in answer(viewer, "When do the pools drain?")


def test_are_we_keeping_up_where_nothing_is_done(viewer: Client, shop: Shop) -> None:
    shop.many(60)

    assert re.search(r"No 0/s done, [\d.]+/s new", answer(viewer, "Are we keeping up?"))


@pytest.mark.parametrize(
    ("done", "new", "ready", "wait", "words"),
    [
        (914.0, 842.0, 10, 60.0, "Yes, by 72/s"),
        (842.0, 842.0, 10, 60.0, "Yes"),
        (820.0, 842.0, 10, 60.0, "Yes"),
        (642.0, 842.0, 10, 60.0, "No, by 200/s"),
        (642.0, 842.0, 10, 1.0, "Yes"),  # jobs that wait start within a second
        (0.0, 0.0, 0, 0.0, "Yes"),
    ],
)
def test_are_we_keeping_up_by_rates(done: float, new: float, ready: int, wait: float, words: str) -> None:
    pool = {"name": "a", "ready": ready, "paused": None, "workers": 1, "oldest_ready_age_seconds": 1.0}
    rates = {"throughput_per_second": done, "enqueued_per_second": new, "predicted_wait_seconds": wait}

    assert questions.answers(Overall(pools=(pool | rates,), states={}, workers=1))[4].answer == words


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


def test_jobs_that_nobody_puts_in_line_are_late_and_need_somebody(viewer: Client, shop: Shop) -> None:
    shop.many(2, delay_ms=1)
    time.sleep(0.05)

    page = text(viewer.get("/dashboard/"))

    assert "Scheduled jobs are due and stand in no line" in page
    assert "Nothing needs you" not in page
    assert "jobs are due, and no worker is alive" in answer(viewer, "Is anything late?")
    assert "Never jobs are due" in answer(viewer, "When do the pools drain?")
    assert answer(viewer, "Are we keeping up?").startswith(" No ")


def test_jobs_that_are_due_later_need_nobody(viewer: Client, shop: Shop) -> None:
    shop.scheduled()

    assert "Nothing needs you" in text(viewer.get("/dashboard/"))
    assert answer(viewer, "Is anything late?").startswith(" Nothing ")


def test_while_everything_is_paused_nothing_is_said_to_drain_or_to_keep_up(viewer: Client, shop: Shop) -> None:
    shop.many(3)
    shop.worker()
    api.scheduler.pause(reason="disk move")

    assert "Paused default paused" in answer(viewer, "When do the pools drain?")
    assert answer(viewer, "Are we keeping up?").startswith(" Paused ")
    pools = text(viewer.get("/dashboard/pools/"))
    assert "3 jobs ready, and everything is paused." in pools
    assert "default paused with everything" in pools
    assert "Everything is paused; 3 jobs ready." in text(viewer.get("/dashboard/pools/", {"name": "default"}))


def test_what_waits_long_in_a_paused_pool_is_not_passed_over(
    viewer: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "LATE_SECONDS", -1.0)
    shop.ready(pool="reports")
    shop.worker(pools={"reports": 1})
    api.pools.pause("reports", reason="disk move")

    assert ", except in reports (paused)" in answer(viewer, "Is anything late?")
    assert answer(viewer, "Are we keeping up?").startswith(" Paused ")
    assert "Paused with ready jobs: reports." in text(viewer.get("/dashboard/pools/"))


def counters(viewer: Client) -> list[str]:
    figures = viewer.get("/dashboard/snapshot/").json()["figures"]
    found = [text for key, text in figures.items() if key.startswith("states.")]
    assert len(found) == 9
    return found


def test_parked_jobs_are_named_where_nothing_else_waits(shop: Shop) -> None:
    shop.ready()
    seen = reads.overall()
    pools = tuple(pool | {"parked": 2, "oldest_ready_age_seconds": None} for pool in seen.pools)
    overall = replace(seen, pools=pools)

    late = next(one for one in questions.answers(overall) if one.question == "Is anything late?")

    assert late.detail == "no job in line is ready for over 1 min; 2 are parked"
    assert figures(overall)["pools.oldest"] == "2 parked"


def test_a_pool_with_nothing_but_parked_jobs_is_no_warning(shop: Shop) -> None:
    """No worker may run them: they are named, and wait in no line that could drain or be kept up with."""
    shop.worker()
    shop.many(3)
    seen = reads.overall()
    overall = replace(seen, pools=tuple(pool | {"parked": pool["ready"]} for pool in seen.pools))

    drain, keeping_up = questions.answers(overall)[3:]

    assert (drain.mark, drain.answer, drain.detail) == (
        "succeeded",
        "Now",
        "nothing but 3 parked jobs is ready and waiting",
    )
    assert (keeping_up.mark, keeping_up.answer) == ("succeeded", "Yes")
