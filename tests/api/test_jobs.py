"""Looking at single jobs and deciding over them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from jobs import (
    JobFilter,
    await_,
    cancel,
    discard,
    enqueue,
    get_job,
    resubmit,
    retry,
    run_now,
    wait,
)
from jobs.api import (
    acancel,
    discard_many,
    enqueue_many,
    get_jobs,
    list_jobs,
    resubmit_many,
)
from jobs.core.states import JobState
from jobs.exceptions import JobNotFound, JobTimeout, PayloadInvalid, PayloadTooLarge, WrongState
from jobs.testing import drain
from tests.support.wait import soon


def ready() -> str:
    return enqueue("mail.send", {"to": "Ann"}).id


def scheduled() -> str:
    return enqueue("mail.send", {"to": "Ann"}, delay=3600).id


def failed() -> str:
    """In retry_wait for an hour."""
    id = enqueue("math.divide", {"a": 1, "b": 0}).id
    drain()
    return id


def dead() -> str:
    id = enqueue("math.divide", {"a": 1, "b": 0}, max_retries=0).id
    drain()
    return id


def cancelled() -> str:
    return cancel(ready()).id


def succeeded() -> str:
    id = ready()
    drain()
    return id


EVERY_KIND = {
    "ready": ready,
    "scheduled": scheduled,
    "retry_wait": failed,
    "dead": dead,
    "cancelled": cancelled,
    "succeeded": succeeded,
}


@pytest.mark.parametrize("state", EVERY_KIND)
def test_the_makers_of_this_file_make_what_they_say(state: str) -> None:
    assert get_job(EVERY_KIND[state]()).state == state


class TestVerbsByState:
    """What each verb does to a job in each state. Where the table is silent: WrongState, and nothing changed."""

    TABLE = {
        retry: {"scheduled": "ready", "retry_wait": "ready", "dead": "ready", "cancelled": "ready"},
        run_now: {"scheduled": "ready", "retry_wait": "ready"},
        resubmit: {"dead": "ready", "cancelled": "ready"},
        cancel: {"scheduled": "cancelled", "retry_wait": "cancelled", "ready": "cancelled"},
    }

    @pytest.mark.parametrize("state", EVERY_KIND)
    @pytest.mark.parametrize("verb", TABLE, ids=lambda verb: verb.__name__)
    def test_a_verb_moves_a_job_or_says_its_state(self, verb: Callable[..., object], state: str) -> None:
        """AC-49 and AC-186."""
        id = EVERY_KIND[state]()
        after = self.TABLE[verb].get(state)

        if after is None:
            with pytest.raises(WrongState) as caught:
                verb(id)
            assert caught.value.state == state
        else:
            verb(id)
        assert get_job(id).state == (after or state)

    @pytest.mark.parametrize("state", EVERY_KIND)
    def test_only_ended_jobs_can_be_discarded(self, state: str) -> None:
        id = EVERY_KIND[state]()

        if state in ("dead", "cancelled", "succeeded"):
            discard(id)
            with pytest.raises(JobNotFound):
                get_job(id)
        else:
            with pytest.raises(WrongState):
                discard(id)

    @pytest.mark.parametrize("verb", [*TABLE, get_job, discard, wait], ids=lambda verb: verb.__name__)
    @pytest.mark.parametrize("id", ["nobody", "01hzzzzzzzzzzzzzzzzz-critical.1.0", "", "\x00", "{}", "\ud800"])
    def test_a_job_that_is_not_there_is_not_found(self, verb: Callable[..., object], id: str) -> None:
        with pytest.raises(JobNotFound):
            verb(id)


class TestResubmit:
    def test_attempts_start_anew_and_history_stays(self) -> None:
        """AC-53."""
        job = resubmit(dead())

        assert (job.state, job.resubmissions) == (JobState.READY, 1)
        assert [attempt.outcome for attempt in job.attempts] == ["failed"]
        drain()
        assert get_job(job.id).attempt == 1

    def test_a_new_payload_can_be_given_and_is_checked(self) -> None:
        id = dead()
        with pytest.raises(PayloadInvalid, match="'b'"):
            resubmit(id, {"a": 1})

    def test_a_new_payload_has_the_limit_of_any(self) -> None:
        id = enqueue("mail.send", {"to": "Ann"}).id
        cancel(id)

        with pytest.raises(PayloadTooLarge):
            resubmit(id, {"to": "x" * 1_000_000})

    def test_the_new_payload_is_the_one_that_runs(self) -> None:
        id = dead()

        resubmit(id, {"a": 6, "b": 2})
        drain()

        assert get_job(id).result == 3.0

    def test_several_at_once_say_what_went_wrong_with_each(self) -> None:
        a_dead, a_ready = dead(), ready()

        outcome = resubmit_many([a_dead, a_ready, "nobody"])

        assert outcome[a_dead] is None
        assert isinstance(outcome[a_ready], WrongState)
        assert isinstance(outcome["nobody"], JobNotFound)

    def test_several_with_a_payload_too(self) -> None:
        a_dead, a_sent = dead(), succeeded()

        outcome = resubmit_many([a_dead, a_sent], {"a": 1, "b": 1})

        assert outcome[a_dead] is None
        assert outcome[a_sent] is not None
        assert get_job(a_dead).payload == {"a": 1, "b": 1}


class TestLists:
    def test_jobs_are_listed_by_filter(self) -> None:
        ids = {enqueue("mail.send", {"to": "Ann"}, tags=["x"]).id for _ in range(3)}
        scheduled()

        assert {job.id for job in list_jobs(JobFilter(states=(JobState.READY,), tag="x")).items} == ids

    def test_pages_follow_one_another_without_gap_or_overlap(self) -> None:
        ids = [handle.id for handle in enqueue_many("mail.send", [{"to": str(n)} for n in range(25)])]

        seen: list[str] = []
        cursor = None
        while True:
            page = list_jobs(limit=10, cursor=cursor)
            seen += [job.id for job in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break

        assert sorted(seen) == sorted(ids)

    def test_several_are_read_in_the_order_asked_for(self) -> None:
        one, two = ready(), ready()

        found = get_jobs([two, "nobody", one])

        assert [job and job.id for job in found] == [two, None, one]

    def test_several_are_discarded_with_what_went_wrong_for_each(self) -> None:
        ended, live = cancelled(), ready()

        outcome = discard_many([ended, live])

        assert outcome[ended] is None
        assert isinstance(outcome[live], WrongState)


class TestWait:
    @pytest.mark.parametrize("state", ["dead", "cancelled", "succeeded"])
    def test_it_answers_the_ended_job_however_it_ended(self, state: str) -> None:
        assert wait(EVERY_KIND[state](), timeout=1).state == state

    def test_it_ends_with_a_time_out_and_the_job_goes_on(self) -> None:
        id = scheduled()
        begun = time.monotonic()

        with pytest.raises(JobTimeout, match="scheduled"):
            wait(id, timeout=0.1)

        assert 0.1 <= time.monotonic() - begun < soon(1)
        assert get_job(id).state == JobState.SCHEDULED

    def test_its_time_out_is_a_time_out_error(self) -> None:
        with pytest.raises(TimeoutError):
            wait(scheduled(), timeout=0)

    def test_it_sees_the_end_soon_after_it_happened(self) -> None:
        id = ready()
        ended: list[float] = []

        def work() -> None:
            drain()
            ended.append(time.monotonic())

        thread = threading.Timer(0.05, work)
        thread.start()
        job = wait(id, timeout=60)
        thread.join()

        assert job.state == JobState.SUCCEEDED
        assert time.monotonic() - ended[0] < soon(0.5)

    async def test_the_async_twin_waits_too(self) -> None:
        id = ready()
        threading.Timer(0.05, drain).start()

        assert (await await_(id, timeout=60)).state == JobState.SUCCEEDED
        with pytest.raises(JobTimeout):
            await await_(scheduled(), timeout=0.05)


class TestHandle:
    def test_it_follows_its_job(self) -> None:
        handle = enqueue("mail.send", {"to": "Ann"})
        drain()

        assert handle.state == "ready"
        assert handle.refresh().result == "Ann"
        assert handle.state == "succeeded"
        assert handle.wait(timeout=1).id == handle.id

    def test_it_cancels_its_job(self) -> None:
        handle = enqueue("mail.send", {"to": "Ann"}, delay=60)

        assert handle.cancel().state == handle.state == "cancelled"

    async def test_it_has_async_twins(self) -> None:
        handle = enqueue("mail.send", {"to": "Ann"}, delay=60)

        assert (await handle.acancel()).state == "cancelled"
        assert (await handle.await_(timeout=1)).state == "cancelled"
        assert (await handle.arefresh()).state == "cancelled"


def test_a_cancelled_delayed_job_never_runs() -> None:
    """AC-70 and AC-71."""
    id = enqueue("mail.send", {"to": "Ann"}, delay=timedelta(milliseconds=30)).id
    cancel(id)

    threading.Event().wait(0.05)
    drain()

    assert get_job(id).state == JobState.CANCELLED


async def test_verbs_have_async_twins_with_the_same_errors() -> None:
    with pytest.raises(JobNotFound):
        await acancel("nobody")
