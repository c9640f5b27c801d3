"""What ``jobs.testing`` gives to the tests of a project."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from jobs import Cancelled, Context, Dead, Fixed, Retry, Snooze, current_context, enqueue, get_job, job
from jobs.core.states import JobState
from jobs.engine import Engine, get_engine
from jobs.exceptions import JobNotFound, PayloadInvalid
from jobs.testing import capture, drain, inline, isolated
from tests.api import types


class TestCapture:
    def test_it_keeps_what_is_enqueued_and_runs_nothing(self) -> None:
        with capture() as jobs:
            enqueue("mail.send", {"to": "Ann"}, delay=60, tags=["x"])
            enqueue("mail.asend", {"to": "Bob"})

        assert [(job.type, job.state) for job in jobs] == [("mail.send", "scheduled"), ("mail.asend", "ready")]
        assert jobs.of("mail.send")[0].payload == {"to": "Ann"}
        assert (jobs[0].spec.tags, jobs[0].spec.pool, jobs[0].spec.delay_ms) == (("x",), "critical", 60_000)
        assert types.seen == []

    def test_it_needs_no_server(self, settings: Any) -> None:
        settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": "redis://127.0.0.1:1"}

        with capture() as jobs:
            handle = enqueue("mail.send", {"to": "Ann"})

        assert handle.id == jobs[0].id

    def test_payloads_are_checked_as_always(self) -> None:
        with capture(), pytest.raises(PayloadInvalid):
            enqueue("mail.send", {"to": 5})

    def test_what_it_kept_can_be_run(self) -> None:
        with capture() as jobs:
            enqueue("mail.send", {"to": "Ann"})
            enqueue("mail.asend", {"to": "Bob"})
            jobs.run()

        assert [(job.state, job.result) for job in jobs] == [("succeeded", "Ann"), ("succeeded", "Bob")]

    def test_jobs_enqueued_by_jobs_are_run_as_well(self) -> None:
        @job("chain.first")
        def first() -> None:
            enqueue("mail.send", {"to": "from the first"})

        with capture() as jobs:
            enqueue("chain.first", {})
        jobs.run()

        assert [job.type for job in jobs] == ["chain.first", "mail.send"]
        assert jobs[1].state == "succeeded"

    def test_afterwards_jobs_go_to_the_store_again(self, engine: Engine) -> None:
        with capture():
            pass

        assert engine.jobs.find(enqueue("mail.send", {"to": "Ann"}).id) is not None

    @pytest.mark.django_db(transaction=True)
    def test_jobs_that_wait_for_a_commit_arrive_with_it(self) -> None:
        with capture() as jobs:
            with transaction.atomic():
                enqueue("mail.send", {"to": "Ann"}, on_commit=True)
                assert jobs == []
            assert len(jobs) == 1


class TestInline:
    def test_a_job_has_run_when_enqueue_returns(self) -> None:
        with inline() as jobs:
            handle = enqueue("mail.send", {"to": "Ann", "address": {"street": "High St"}})

        assert (handle.state, jobs[0].result) == ("succeeded", "Ann")
        assert types.seen[0]["address"] == types.Address("High St")

    async def test_from_async_code_too(self) -> None:
        from jobs import aenqueue

        with inline() as jobs:
            await aenqueue("mail.asend", {"to": "Ann"})

        assert jobs[0].result == "Ann"

    def test_retries_follow_at_once(self) -> None:
        attempts: list[int] = []

        @job("flaky.job", max_retries=3, backoff=Fixed(3600))
        def flaky(*, ctx: Context) -> str:
            attempts.append(ctx.attempt)
            if ctx.attempt < 3:
                raise Retry(after=60)
            return "done"

        with inline() as jobs:
            flaky.enqueue()

        assert attempts == [1, 2, 3]
        assert (jobs[0].state, jobs[0].attempts) == ("succeeded", 3)

    def test_an_error_that_ends_the_job_is_raised_by_its_enqueue(self) -> None:
        with inline(), pytest.raises(ZeroDivisionError):
            enqueue("math.divide", {"a": 1, "b": 0})

        assert len(types.seen) == 3

    def test_or_it_stays_with_the_job(self) -> None:
        with inline(raise_errors=False) as jobs:
            handle = enqueue("math.odd", {"what": "dead"})

        assert handle.state == "dead"
        assert isinstance(jobs[0].error, Dead)

    def test_a_snooze_lasts_no_time_and_is_no_attempt(self) -> None:
        naps = iter([Snooze(3600), Snooze(3600)])
        attempts: list[int] = []

        @job("sleepy.job", max_retries=0)
        def sleepy(*, ctx: Context) -> None:
            attempts.append(ctx.attempt)
            for nap in naps:
                raise nap

        with inline() as jobs:
            sleepy.enqueue()

        assert attempts == [1, 1, 1]
        assert jobs[0].state == "succeeded"

    def test_a_job_that_snoozes_for_ever_is_pointed_out(self) -> None:
        with inline(), pytest.raises(AssertionError, match=r"math\.odd snoozed"):
            enqueue("math.odd", {"what": "snooze"})

    def test_a_job_may_cancel_itself(self) -> None:
        @job("self.cancel")
        def stop() -> None:
            raise Cancelled

        with inline() as jobs:
            stop.enqueue()

        assert jobs[0].state == "cancelled"

    def test_a_result_that_is_no_json_fails_as_in_a_worker(self) -> None:
        with inline(), pytest.raises(TypeError, match="result cannot be stored"):
            enqueue("math.odd", {"what": "object"})

    def test_the_current_context_is_that_of_the_job(self) -> None:
        @job("who.ami")
        def who() -> str:
            return current_context().type

        with inline() as jobs:
            who.enqueue()

        assert jobs[0].result == "who.ami"


class TestDrain:
    def test_it_runs_what_is_ready_in_the_store(self) -> None:
        ids = [enqueue("mail.send", {"to": str(n)}).id for n in range(3)]

        ended = drain()

        assert [job.id for job in ended] == ids
        assert {job.state for job in ended} == {JobState.SUCCEEDED}
        assert [seen["to"] for seen in types.seen] == ["0", "1", "2"]

    def test_higher_priority_goes_first(self) -> None:
        enqueue("mail.send", {"to": "low"}, priority=-5)
        enqueue("mail.send", {"to": "high"}, priority=50)
        drain()

        assert [seen["to"] for seen in types.seen] == ["high", "low"]

    def test_delays_and_backoffs_are_kept_unless_skipped(self) -> None:
        delayed = enqueue("mail.send", {"to": "Ann"}, delay=3600)
        failing = enqueue("math.divide", {"a": 1, "b": 0})

        drain()
        assert (get_job(delayed.id).state, get_job(failing.id).state) == (JobState.SCHEDULED, JobState.RETRY_WAIT)

        drain(skip_waits=True)
        assert (get_job(delayed.id).state, get_job(failing.id).state) == (JobState.SUCCEEDED, JobState.DEAD)
        assert len(types.seen) == 4

    def test_the_context_is_that_of_the_job(self) -> None:
        """AC-7 and AC-10: the handler sees the id that the enqueue answered; progress is kept."""
        handle = enqueue("math.count", {"up_to": 10})
        drain()

        job = handle.refresh()
        assert job.result == {"id": handle.id, "attempt": 1}
        assert job.progress is not None

    def test_the_last_error_is_kept(self) -> None:
        """AC-185, AC-37."""
        handle = enqueue("math.divide", {"a": 1, "b": 0}, max_retries=0)
        drain()

        error = handle.refresh().error
        assert error is not None
        assert (error["type"], "in divide" in error["traceback"]) == ("ZeroDivisionError", True)

    def test_errors_in_dead_on_are_not_retried(self) -> None:
        @job("strict.job", dead_on=(KeyError,))
        def strict() -> None:
            raise KeyError("x")

        handle = strict.enqueue()
        drain(skip_waits=True)

        assert (handle.refresh().state, handle.refresh().attempt) == (JobState.DEAD, 1)

    def test_a_type_that_is_not_registered_is_left_for_others(self) -> None:
        """AC-193."""
        handle = enqueue("other.type", {}, allow_unknown=True)

        drain()

        assert handle.refresh().state == JobState.READY

    def test_only_the_pools_asked_for_are_drained(self) -> None:
        enqueue("mail.send", {"to": "critical"})
        enqueue("mail.send", {"to": "slow"}, pool="slow")

        assert [job.pool for job in drain(pools=["slow"])] == ["slow"]

    def test_work_without_end_is_pointed_out(self) -> None:
        @job("endless.job")
        def endless() -> None:
            enqueue("endless.job", {})

        endless.enqueue()
        with pytest.raises(AssertionError, match="limit"):
            drain(limit=10)

    @pytest.mark.django_db
    def test_handlers_see_the_rows_of_the_test(self) -> None:
        User.objects.create(username="ann")

        @job("db.job")
        def count() -> int:
            return User.objects.count()

        handle = count.enqueue()
        drain()

        assert handle.refresh().result == 1


def test_an_isolated_block_has_a_store_of_its_own_and_leaves_nothing() -> None:
    outside = enqueue("mail.send", {"to": "outside"})
    with isolated():
        inside = enqueue("mail.send", {"to": "inside"})
        client = get_engine().store.client
        pattern = f"{get_engine().store.namespace}:*"
        assert list(client.scan_iter(match=pattern)) != []
        with pytest.raises(JobNotFound):
            get_job(outside.id)

    assert get_job(outside.id).state == JobState.READY
    assert list(get_engine().store.client.scan_iter(match=pattern)) == []
    with pytest.raises(JobNotFound):
        get_job(inside.id)
