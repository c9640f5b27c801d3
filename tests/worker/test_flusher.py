"""Ends of attempts on their way to a real store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from jobs.core.job import LeasedJob, Route
from jobs.engine import Completion, Failure, new_token
from jobs.exceptions import StoreUnavailable
from jobs.worker.batch import Batch
from jobs.worker.flusher import BUSY, GATHER_SECONDS, PLENTY, Flusher
from jobs.worker.reports import Reports
from jobs.worker.settlement import Drop, Elsewhere, Park, Release
from tests.support.wait import eventually, soon
from tests.worker.conftest import ROUTE, Parts


@pytest.fixture
def flusher(parts: Parts) -> Flusher:
    parts.flusher.start()
    return parts.flusher


@pytest.fixture
def lease(parts: Parts) -> Callable[..., tuple[Batch, list[LeasedJob]]]:
    """Enqueues and leases ``count`` jobs."""

    def lease(count: int, **spec: Any) -> tuple[Batch, list[LeasedJob]]:
        parts.enqueue(count=count, **spec)
        token = new_token()
        reply = parts.engine.leases.lease(ROUTE, worker="w", token=token, limit=count, lease_ms=10_000)
        batch = Batch(
            1,
            token,
            ROUTE,
            count,
            leased_at=time.monotonic(),
            clock_offset=0,
            lease_seconds=10,
            cells=parts.cells,
        )
        return batch, reply.jobs

    return lease


def completion(job: LeasedJob) -> Completion:
    return Completion(job.id, job.token, job.type, job.leased_at, b"1")


def test_a_lone_end_is_told_at_once_and_its_batch_closed(parts: Parts, flusher: Flusher, lease: Any) -> None:
    batch, (job,) = lease(1)

    flusher.settle(batch, completion(job))

    eventually(lambda: parts.closed == [1])
    assert parts.states([job.id]) == {"succeeded"}


def test_every_way_to_end_arrives_and_only_a_lost_lease_is_worth_a_warning(
    parts: Parts, flusher: Flusher, lease: Any, caplog: pytest.LogCaptureFixture
) -> None:
    batch, jobs = lease(8)
    done, retried, dead, released, charged, parked, dropped, elsewhere = jobs
    flusher.settle(batch, completion(done))
    flusher.settle(batch, Failure(retried.id, retried.token, retried.type, retried.leased_at, "retry", 60_000))
    flusher.settle(batch, Failure(dead.id, dead.token, dead.type, dead.leased_at, "dead", error=b'{"type":"E"}'))
    flusher.settle(batch, Release(released.id, released.token, released.type))
    flusher.settle(batch, Release(charged.id, charged.token, charged.type, charged=True))
    flusher.settle(batch, Park(parked.id, parked.token, parked.type))
    flusher.settle(batch, Drop(dropped.id))
    flusher.settle(batch, Elsewhere(elsewhere.id))

    eventually(lambda: parts.closed == [1])
    assert caplog.messages == ["lost the leases of 1 jobs: what they did here is not reported"]
    found = [parts.get(job.id) for job in jobs[:-1]]
    assert [job.state for job in found] == ["succeeded", "retry_wait", "dead", "ready", "ready", "ready", "leased"]
    assert [job.attempt for job in found] == [1, 1, 1, 0, 1, 0, 1]
    assert found[5].parked


def test_what_is_known_of_single_leases_goes_with_their_batch(parts: Parts, flusher: Flusher, lease: Any) -> None:
    batch, (first, last) = lease(2)
    parts.marks.lost.update([(first.id, first.token), (last.id, last.token)])
    parts.marks.cancelled.add((last.id, last.token))

    flusher.settle(batch, Drop(first.id))
    eventually(lambda: batch.remaining == 1)
    assert parts.marks.is_lost(last)
    flusher.settle(batch, completion(last))

    eventually(lambda: parts.closed == [1])
    assert not parts.marks.lost
    assert not parts.marks.cancelled


def test_a_flusher_that_cannot_go_on_says_so(
    parts: Parts, flusher: Flusher, lease: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process ends then: what it has leased would be renewed for ever, and never end."""

    def fail(ends: Any) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(flusher.messenger, "hear", fail)
    batch, (job,) = lease(1)
    flusher.settle(batch, completion(job))

    eventually(lambda: parts.failures == ["failed"])
    assert parts.closed == []


def test_many_ends_share_few_calls(parts: Parts, flusher: Flusher, lease: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    complete = parts.engine.leases.complete
    flusher._senders[Completion] = lambda route, items: calls.append(len(items)) or complete(route, items)
    batch, jobs = lease(900)

    for job in jobs:
        flusher.settle(batch, completion(job))

    eventually(lambda: parts.closed == [1])
    assert sum(calls) == 900
    assert len(calls) < 90


@pytest.mark.parametrize(("waiting", "pauses"), [(BUSY, 1), (PLENTY, 1), (PLENTY + 1, 0)])
def test_more_ends_are_waited_for_only_while_there_are_few(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, waiting: int, pauses: int
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(parts.flusher._pause, "wait", paused.append)
    batch: Any = None
    for number in range(waiting):
        parts.flusher.settle(batch, Drop(str(number)))

    assert len(parts.flusher._collect(gather=True)) == waiting
    assert paused == [GATHER_SECONDS] * pauses


def test_results_are_kept_while_the_store_is_away(parts: Parts, flusher: Flusher, lease: Any) -> None:
    batch, (job,) = lease(1)
    answers = iter([StoreUnavailable("away"), StoreUnavailable("away")])
    complete = parts.engine.leases.complete

    def sometimes(route: Route, items: list[Completion]) -> list[str]:
        for error in answers:
            raise error
        return complete(route, items)

    flusher._senders[Completion] = sometimes
    flusher.settle(batch, completion(job))

    eventually(lambda: flusher.trouble == "away")
    eventually(lambda: parts.closed == [1])
    assert flusher.trouble is None
    assert parts.states([job.id]) == {"succeeded"}


def test_one_end_that_the_store_refuses_does_not_hold_up_the_others(parts: Parts, flusher: Flusher, lease: Any) -> None:
    batch, jobs = lease(20)
    complete = parts.engine.leases.complete

    def picky(route: Route, items: list[Completion]) -> list[str]:
        if any(item.id == jobs[7].id for item in items):
            raise ValueError("not this one")
        return complete(route, items)

    flusher._senders[Completion] = picky
    for job in jobs:
        flusher.settle(batch, completion(job))

    eventually(lambda: parts.closed == [1])
    assert parts.states([job.id for job in jobs if job is not jobs[7]]) == {"succeeded"}
    assert parts.states([jobs[7].id]) == {"leased"}


def test_of_progress_in_quick_succession_the_last_word_is_told(parts: Parts, flusher: Flusher, lease: Any) -> None:
    batch, (job,) = lease(1)
    for step in range(1, 101):
        flusher.reports.progress(job, step, 100, f"step {step}")

    eventually(lambda: (parts.get(job.id).progress or {}).get("current") == 100)
    flusher.reports.progress(job, 101, 101, "the end")
    flusher.settle(batch, completion(job))
    eventually(lambda: parts.closed == [1])
    assert parts.get(job.id).progress == {"current": 101, "total": 101, "message": "the end"}


def test_a_job_that_tells_its_progress_each_millisecond_is_heard_ten_times_a_second(
    parts: Parts, lease: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, (job,) = lease(1)
    now, told = [100.0], list[Any]()
    monkeypatch.setattr("jobs.worker.reports.monotonic", lambda: now[0])
    monkeypatch.setattr(parts.engine.leases, "progress_many", lambda route, group: told.extend(group) or [])
    reports = Reports(parts.engine, lambda: None, lambda lost: None)

    for step in range(1000):
        reports.progress(job, step, 1000, "")
        reports.tell([])
        now[0] += 0.001

    assert [said.current for said in told] == pytest.approx(range(0, 1000, 100), abs=10)


def test_progress_under_a_lost_lease_marks_the_job_as_lost(parts: Parts, flusher: Flusher, lease: Any) -> None:
    _, (job,) = lease(1)
    parts.engine.leases.release(ROUTE, [(job.id, job.token)])

    flusher.reports.progress(job, 1, 2, "")

    eventually(lambda: parts.marks.is_lost(job))


def test_finish_tells_the_rest_and_gives_up_only_when_its_time_is_over(
    parts: Parts, flusher: Flusher, lease: Any
) -> None:
    batch, jobs = lease(300)
    for job in jobs:
        flusher.settle(batch, completion(job))
    assert flusher.finish(5.0)
    assert parts.states([job.id for job in jobs]) == {"succeeded"}
    assert not flusher.is_alive()


def test_finish_returns_when_the_store_stays_away(parts: Parts, flusher: Flusher, lease: Any) -> None:
    batch, (job,) = lease(1)

    def away(route: Route, items: list[Completion]) -> list[str]:
        raise StoreUnavailable("away")

    flusher._senders[Completion] = away
    flusher.settle(batch, completion(job))
    begun = time.monotonic()
    assert not flusher.finish(0.3)
    assert time.monotonic() - begun < soon(4)


class TestLogs:
    def log(self, flusher: Flusher, job: LeasedJob, *messages: str) -> None:
        for message in messages:
            flusher.reports.line(job, 20, message, {}, at_ms=job.leased_at)

    def lines(self, parts: Parts, job: LeasedJob) -> list[str]:
        return [line.message for line in parts.engine.logs.read(ROUTE, job.id).lines]

    def test_lines_arrive_while_the_job_runs_and_the_last_ones_before_its_end(
        self, parts: Parts, flusher: Flusher, lease: Any
    ) -> None:
        batch, (job,) = lease(1)
        self.log(flusher, job, "begun")
        eventually(lambda: self.lines(parts, job) == ["begun"])

        self.log(flusher, job, "nearly", "done")
        flusher.settle(batch, completion(job))

        eventually(lambda: parts.closed == [1])
        assert self.lines(parts, job) == ["begun", "nearly", "done"]

    def test_a_thousand_lines_take_few_calls(
        self, parts: Parts, flusher: Flusher, lease: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[int] = []
        append = parts.engine.logs.append
        monkeypatch.setattr(
            parts.engine.logs, "append", lambda route, new: calls.append(len(new)) or append(route, new)
        )
        _, jobs = lease(10)

        for number in range(100):
            for job in jobs:
                self.log(flusher, job, f"line {number}")

        eventually(lambda: all(len(self.lines(parts, job)) == 100 for job in jobs))
        assert len(calls) < 20

    def test_under_a_lost_lease_nothing_is_kept_and_the_job_is_marked(
        self, parts: Parts, flusher: Flusher, lease: Any
    ) -> None:
        _, (job,) = lease(1)
        parts.engine.leases.release(ROUTE, [(job.id, job.token)])

        self.log(flusher, job, "late")

        eventually(lambda: parts.marks.is_lost(job))
        assert self.lines(parts, job) == []

    def test_of_more_than_is_kept_the_newest_stay_and_the_rest_is_counted(self, parts: Parts, lease: Any) -> None:
        _, (job,) = lease(1)
        most = parts.engine.settings.log_lines
        self.log(parts.flusher, job, *(str(number) for number in range(most + 25)))
        parts.flusher.start()

        eventually(lambda: len(self.lines(parts, job)) == most)
        page = parts.engine.logs.read(ROUTE, job.id)
        assert (page.lines[0].message, page.lines[0].number, page.gone) == ("25", 26, {1: 25})

    def test_what_could_not_be_told_is_told_when_the_store_is_back_before_the_end(
        self, parts: Parts, flusher: Flusher, lease: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        batch, (job,) = lease(1)
        append = parts.engine.logs.append
        answers = iter([StoreUnavailable("away"), StoreUnavailable("away")])

        def sometimes(route: Route, new: Any) -> Any:
            for error in answers:
                raise error
            return append(route, new)

        monkeypatch.setattr(parts.engine.logs, "append", sometimes)
        self.log(flusher, job, "first", "second")
        flusher.settle(batch, completion(job))

        eventually(lambda: parts.closed == [1])
        assert self.lines(parts, job) == ["first", "second"]

    def test_at_the_way_out_all_is_told(self, parts: Parts, flusher: Flusher, lease: Any) -> None:
        _, (job,) = lease(1)
        self.log(flusher, job, "first")
        eventually(lambda: self.lines(parts, job) == ["first"])
        self.log(flusher, job, "last")

        assert flusher.finish(5.0)
        assert self.lines(parts, job) == ["first", "last"]


def test_who_tells_of_the_dead_hears_of_a_death(parts: Parts, flusher: Flusher, lease: Any) -> None:
    batch, (retried, dead) = lease(2)

    flusher.settle(batch, Failure(retried.id, retried.token, retried.type, retried.leased_at, "retry", 60_000))
    eventually(lambda: batch.remaining == 1)
    assert parts.burials == []
    flusher.settle(batch, Failure(dead.id, dead.token, dead.type, dead.leased_at, "dead"))

    eventually(lambda: parts.closed == [1])
    assert parts.burials == ["died"]
