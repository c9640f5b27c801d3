"""Unique keys: never two live jobs of one type and key, over all pools, whatever dies in between."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from jobs.core.job import Enqueued, JobSpec, Unique
from jobs.engine import Engine
from jobs.engine.holders import Holders
from jobs.engine.jobs.unique_keys import UniqueKeys
from jobs.exceptions import DuplicateJob, OptionInvalid, OutcomeUnknown, PoolFull, StoreUnavailable
from tests.support.clock import ManualClock
from tests.support.steps import Steps, everything

NAME = "t\0k"
"""How the key ``k`` of type ``t`` is claimed."""


def enqueue(
    engine: Engine, key: str = "k", *, until: Any = "finished", on: str = "return", payload: bytes = b"{}", **spec: Any
) -> Enqueued:
    unique = Unique(key=key, until=until, on_duplicate=on)
    return engine.jobs.enqueue(JobSpec(**{"type": "t", "unique": unique, **spec}), [payload])[0]


def holder(engine: Engine, name: str = NAME) -> str | None:
    """Who holds the key, without changing it."""
    found = dict(pair for bucket in range(256) for pair in Holders(engine.store, "unique").sweep(bucket))
    return found.get(name)


@pytest.fixture
def first(engine: Engine) -> Enqueued:
    """A live job that holds the key ``k``."""
    return enqueue(engine)


def test_the_first_holds_the_key_and_shows_it(engine: Engine, first: Enqueued) -> None:
    assert not first.existing
    assert engine.jobs.get(first.id).unique_key == "k"
    assert holder(engine) == first.id


def test_a_second_gets_the_first_back(engine: Engine, steps: Steps, first: Enqueued) -> None:
    again = enqueue(engine, payload=b"[2]")

    assert (again.id, again.existing, again.state) == (first.id, True, "ready")
    assert [job.payload for job in steps.lease_all()] == [b"{}"]


def test_a_second_is_refused_where_that_was_asked_for(engine: Engine, first: Enqueued) -> None:
    with pytest.raises(DuplicateJob, match="'k'") as refused:
        enqueue(engine, on="raise")

    assert refused.value.job_id == first.id


def test_a_second_replaces_a_waiting_one(engine: Engine, steps: Steps, first: Enqueued) -> None:
    second = enqueue(engine, on="replace", payload=b"[2]")

    assert not second.existing
    assert engine.jobs.get(first.id).state == "cancelled"
    assert [job.id for job in steps.lease_all()] == [second.id]
    assert holder(engine) == second.id


def test_a_replacement_that_fails_half_way_names_the_job_that_it_cancelled(
    engine: Engine, first: Enqueued, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(engine.jobs.creation, "_create", away)

    with pytest.raises(OutcomeUnknown, match=f"{first.id} was cancelled"):
        enqueue(engine, on="replace")
    with pytest.raises(StoreUnavailable):
        enqueue(engine, "other key", on="replace")

    assert engine.jobs.get(first.id).state == "cancelled"


def test_a_running_one_is_not_replaced(engine: Engine, steps: Steps, first: Enqueued) -> None:
    job = steps.lease(started=True)

    second = enqueue(engine, on="replace")

    assert (second.id, second.existing) == (first.id, True)
    assert not engine.jobs.get(first.id).cancel_requested
    assert steps.complete(job) == "ok"


def test_keys_of_other_types_and_other_keys_are_apart(engine: Engine, first: Enqueued) -> None:
    others = [enqueue(engine, "k2"), enqueue(engine, type="t2"), enqueue(engine, "\0k"), enqueue(engine, "K")]

    assert len({first.id, *(other.id for other in others)}) == 5
    assert not any(other.existing for other in others)


def test_a_key_is_one_over_all_pools(engine: Engine, first: Enqueued) -> None:
    again = enqueue(engine, pool="other")

    assert (again.id, again.pool) == (first.id, "default")


@pytest.mark.parametrize("state", ["ready", "scheduled", "leased", "retry_wait", "parked"])
@pytest.mark.parametrize("on", ["return", "raise"])
def test_until_finished_every_live_state_holds_the_key(engine: Engine, steps: Steps, state: str, on: str) -> None:
    created = enqueue(engine, delay_ms=60_000 if state == "scheduled" else 0)
    if state in ("leased", "retry_wait", "parked"):
        job = steps.lease(started=True)
        if state == "retry_wait":
            steps.fail(job, "retry", delay_ms=60_000)
        elif state == "parked":
            steps.park(job)

    if on == "raise":
        with pytest.raises(DuplicateJob):
            enqueue(engine, on=on)
    else:
        assert enqueue(engine, on=on).id == created.id


@pytest.mark.parametrize("end", ["succeeded", "dead", "cancelled", "discarded"])
@pytest.mark.parametrize("on", ["return", "raise", "replace"])
def test_until_finished_an_ended_job_gives_the_key_free(
    engine: Engine, steps: Steps, first: Enqueued, end: str, on: str
) -> None:
    job = steps.lease()
    if end == "succeeded":
        steps.complete(job)
    elif end == "dead":
        steps.fail(job, "dead")
    else:
        engine.jobs.cancel(job.id)
        steps.release(job)
        if end == "discarded":
            engine.jobs.discard(job.id)

    second = enqueue(engine, on=on)

    assert not second.existing
    assert second.id != first.id


def test_until_started_the_first_start_gives_the_key_free_and_not_the_lease(engine: Engine, steps: Steps) -> None:
    first = enqueue(engine, until="started")
    assert enqueue(engine, until="started").existing

    job = steps.lease()
    assert enqueue(engine, until="started").id == first.id
    steps.start(job)

    second = enqueue(engine, until="started")
    assert (second.existing, second.id == first.id) == (False, False)
    assert enqueue(engine, until="started").id == second.id


def test_until_started_a_retry_does_not_take_the_key_back(engine: Engine, steps: Steps) -> None:
    enqueue(engine, until="started")
    steps.fail(steps.lease(started=True), "retry", delay_ms=60_000)

    assert not enqueue(engine, until="started").existing


def test_a_window_holds_longer_than_the_retention(engine: Engine, steps: Steps, clock: ManualClock) -> None:
    first = enqueue(engine, until=3_600, result_ttl=1.0)
    job = steps.lease()
    steps.complete(job, ttl_ms=round(job.extras["result_ttl"] * 1_000))

    clock.advance(3_599)
    engine.upkeep.prune_partition(steps.route)

    assert enqueue(engine, until=3_600).id == first.id


@pytest.mark.parametrize("end", [None, "succeeded", "dead"])
def test_a_number_of_seconds_holds_the_key_so_long_whatever_becomes_of_the_job(
    engine: Engine, steps: Steps, clock: ManualClock, end: str | None
) -> None:
    first = enqueue(engine, until=30.5)
    if end == "succeeded":
        steps.complete(steps.lease())
    elif end == "dead":
        steps.fail(steps.lease(), "dead")

    clock.advance(30.499)
    assert enqueue(engine, until=30.5).id == first.id
    with pytest.raises(DuplicateJob):
        enqueue(engine, until=30.5, on="raise")

    clock.advance(0.001)
    assert enqueue(engine, until=30.5).id != first.id


@pytest.mark.parametrize("end", ["succeeded", "dead", "cancelled"])
def test_a_window_can_be_replaced_before_its_end(engine: Engine, steps: Steps, end: str) -> None:
    first = enqueue(engine, until=60)
    if end == "succeeded":
        steps.complete(steps.lease())
    elif end == "dead":
        steps.fail(steps.lease(), "dead")

    second = enqueue(engine, until=60, on="replace")

    assert (second.existing, second.id == first.id) == (False, False)
    assert steps.state(first.id) == end


def test_a_claim_whose_producer_died_is_taken_over(engine: Engine, steps: Steps) -> None:
    """The producer claimed the key and died before it created the job."""
    [abandoned] = engine.jobs.new_ids("default", 1)
    Holders(engine.store, "unique").take(NAME, abandoned)

    created = enqueue(engine)

    assert (created.existing, holder(engine)) == (False, created.id)


def test_a_producer_that_was_only_slow_makes_no_second_job(engine: Engine, steps: Steps) -> None:
    """Its claim was taken for abandoned and its id voided: its enqueue is refused and starts again."""
    [slow] = engine.jobs.new_ids("default", 1)
    Holders(engine.store, "unique").take(NAME, slow)
    winner = enqueue(engine)

    spec = JobSpec(type="t", unique=Unique(key="k"))
    answer = engine.jobs.enqueue(spec, [b"{}"], ids=[slow])[0]

    assert (answer.id, answer.existing) == (winner.id, True)
    assert [job.id for job in steps.lease_all()] == [winner.id]
    assert engine.jobs.find(slow) is None


@pytest.mark.parametrize("on", ["return", "replace"])
def test_thirty_producers_at_once_make_one_live_job(engine: Engine, steps: Steps, on: str) -> None:
    with ThreadPoolExecutor(30) as threads:
        answers = list(threads.map(lambda n: enqueue(engine, on=on, payload=b"[%d]" % n), range(30)))

    live = steps.lease_all()
    assert len(live) == 1
    assert holder(engine) == live[0].id
    made = {answer.id for answer in answers if not answer.existing}
    assert live[0].id in made
    if on == "return":
        assert {answer.id for answer in answers} == {live[0].id}
        assert sum(not answer.existing for answer in answers) == 1
    else:
        others = engine.jobs.get_many(made - {live[0].id})
        assert [job.state for job in others if job] == ["cancelled"] * (len(made) - 1)


def test_of_thirty_producers_that_may_not_meet_all_but_one_are_refused(engine: Engine) -> None:
    def attempt(number: int) -> str:
        try:
            return enqueue(engine, on="raise", pool=f"p{number % 3}").id
        except DuplicateJob as refused:
            return f"refused for {refused.job_id}"

    with ThreadPoolExecutor(30) as threads:
        answers = list(threads.map(attempt, range(30)))

    [winner] = [answer for answer in answers if not answer.startswith("refused")]
    assert answers.count(f"refused for {winner}") == 29


def test_producers_and_workers_at_once_never_make_two_live_jobs(engine: Engine, steps: Steps) -> None:
    """As soon as the one ends the next is let in, and never before."""
    overlaps: list[int] = []

    def produce(_: int) -> None:
        for _ in range(8):
            try:
                enqueue(engine)
            except OutcomeUnknown:
                continue

    def work(_: int) -> int:
        done = 0
        for _ in range(40):
            jobs = steps.ask(5, worker=f"w{_}").jobs
            overlaps.append(len(jobs))
            done += sum(steps.complete(job) == "ok" for job in jobs)
        return done

    with ThreadPoolExecutor(8) as threads:
        producers = [threads.submit(produce, number) for number in range(6)]
        workers = [threads.submit(work, number) for number in range(2)]
        for producer in producers:
            producer.result()
        done = sum(worker.result() for worker in workers)

    assert max(overlaps) == 1
    assert done >= 1


def test_a_dead_job_takes_its_key_again_when_it_is_resubmitted(engine: Engine, steps: Steps, first: Enqueued) -> None:
    steps.fail(steps.lease(), "dead")

    engine.jobs.resubmit(first.id)

    assert enqueue(engine).id == first.id


def test_a_dead_job_whose_key_another_has_by_now_is_not_resubmitted(
    engine: Engine, steps: Steps, first: Enqueued
) -> None:
    steps.fail(steps.lease(), "dead")
    second = enqueue(engine)

    with pytest.raises(DuplicateJob) as refused:
        engine.jobs.resubmit(first.id)
    outcome = engine.jobs.resubmit_many([first.id])

    assert refused.value.job_id == second.id
    assert isinstance(outcome[first.id], DuplicateJob)
    assert engine.jobs.get(first.id).state == "dead"


def test_a_key_and_an_id_of_ones_own_go_together(engine: Engine) -> None:
    first = enqueue(engine, id="mine-1")
    again = enqueue(engine, id="mine-2")

    assert (again.id, again.existing) == (first.id, True)
    assert engine.jobs.find("mine-2") is None
    assert engine.jobs.enqueue(JobSpec(type="t", id="mine-2"), [b"{}"])[0].id == "mine-2"


def test_an_id_that_is_taken_is_refused_and_the_key_stays_free(engine: Engine) -> None:
    engine.jobs.enqueue(JobSpec(type="t", id="mine"), [b"{}"])

    with pytest.raises(DuplicateJob):
        enqueue(engine, id="mine")

    assert not enqueue(engine).existing


def test_the_same_id_and_key_again_are_refused_and_the_key_stays_with_its_job(engine: Engine) -> None:
    enqueue(engine, id="mine")

    with pytest.raises(DuplicateJob):
        enqueue(engine, id="mine")

    assert holder(engine) == "mine"
    assert enqueue(engine).id == "mine"


def test_a_job_that_was_made_under_these_ids_before_keeps_its_key(engine: Engine, steps: Steps) -> None:
    """A firing that two hosts make, or a request whose answer was lost, is the same job."""
    spec, made = JobSpec(type="t", unique=Unique(key="k")), engine.jobs.new_ids("default", 1)
    first = engine.jobs.enqueue(spec, [b"{}"], ids=made)[0]
    again = engine.jobs.enqueue(spec, [b"{}"], ids=made)[0]

    assert (again.id, again.existing) == (first.id, True)
    assert holder(engine) == first.id
    assert [job.id for job in steps.lease_all()] == made


def test_a_full_pool_gives_id_and_key_back(engine: Engine) -> None:
    engine.pools.configure("default", max_pending=0)

    with pytest.raises(PoolFull):
        enqueue(engine, id="mine")
    engine.pools.configure("default", max_pending=None)

    assert holder(engine) is None
    assert enqueue(engine, id="mine").id == "mine"


@pytest.mark.parametrize("on", ["return", "raise"])
def test_producers_with_an_id_and_a_key_make_one_job_that_is_found_and_holds_its_key(engine: Engine, on: str) -> None:
    """Six names and two keys, all at once, over two pools: whoever loses takes nothing from whoever has won."""

    def attempt(number: int) -> None:
        with suppress(DuplicateJob):
            enqueue(engine, f"k{number % 2}", on=on, id=f"mine-{number % 6}", pool=f"p{number % 2}")

    with ThreadPoolExecutor(24) as threads:
        list(threads.map(attempt, range(96)))

    live = [job for job in engine.jobs.page().items if not job.is_terminal]
    assert sorted(str(job.unique_key) for job in live) == ["k0", "k1"]
    for job in live:
        assert engine.jobs.find(job.id) == job
        assert holder(engine, f"t\0{job.unique_key}") == job.id


def test_a_key_goes_with_one_job(engine: Engine) -> None:
    with pytest.raises(OptionInvalid):
        engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k")), [b"{}", b"{}"])

    assert holder(engine) is None


@pytest.mark.parametrize("key", ["", " ", "{}", 'a"b', "\0", "ünï ☃", "x" * 1_000])
def test_any_text_can_be_a_key(engine: Engine, key: str) -> None:
    first = enqueue(engine, key)

    assert enqueue(engine, key).id == first.id
    assert engine.jobs.get(first.id).unique_key == key


def test_a_key_that_is_no_text_is_refused_and_nothing_is_stored(engine: Engine) -> None:
    with pytest.raises(OptionInvalid):
        enqueue(engine, "\ud800")

    assert [key for key in everything(engine.store) if "settings" not in key] == []


def test_of_dead_jobs_with_one_key_that_are_resubmitted_together_the_first_lives(engine: Engine, steps: Steps) -> None:
    jobs = []
    for _ in range(3):
        jobs.append(enqueue(engine).id)
        steps.fail(steps.lease(), "dead")

    outcome = engine.jobs.resubmit_many(jobs)

    assert outcome.pop(jobs[0]) is None
    assert {id: getattr(problem, "job_id", None) for id, problem in outcome.items()} == dict.fromkeys(jobs[1:], jobs[0])
    assert [steps.state(id) for id in jobs] == ["ready", "dead", "dead"]
    assert holder(engine) == jobs[0]


@pytest.mark.parametrize("until", ["started", 60])
def test_they_all_live_where_none_holds_the_key_any_more(
    engine: Engine, steps: Steps, clock: ManualClock, until: Any
) -> None:
    jobs = []
    for _ in range(3):
        jobs.append(enqueue(engine, until=until).id)
        steps.fail(steps.lease(started=True), "dead")
        clock.advance(61)

    assert engine.jobs.resubmit_many(jobs) == dict.fromkeys(jobs)
    assert [steps.state(id) for id in jobs] == ["ready"] * 3


@pytest.mark.parametrize("on", ["return", "raise", "replace"])
def test_a_producer_that_found_a_job_dead_which_is_resubmitted_meanwhile_makes_no_second_live_one(
    engine: Engine, steps: Steps, first: Enqueued, on: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.fail(steps.lease(), "dead")
    take = Holders.take
    resubmissions = iter([first.id])

    def take_late(holders: Holders, name: str, value: str, *, expected: str = "") -> str:
        for id in resubmissions if expected else ():
            engine.jobs.resubmit(id)
        return take(holders, name, value, expected=expected)

    monkeypatch.setattr(Holders, "take", take_late)
    refused = False
    try:
        enqueue(engine, on=on)
    except DuplicateJob:
        refused = True

    assert next(resubmissions, None) is None
    assert refused is (on == "raise")
    live = [job.id for job in engine.jobs.page().items if not job.is_terminal]
    assert live == [holder(engine)]
    assert (live == [first.id]) is (on != "replace")


def test_a_job_whose_key_is_taken_while_it_is_resubmitted_does_not_live_beside_the_one_that_has_it(
    engine: Engine, steps: Steps, first: Enqueued, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.fail(steps.lease(), "dead")
    reclaim = UniqueKeys.reclaim
    made: list[str] = []

    def reclaim_and_stumble(keys: UniqueKeys, ids: list[str]) -> Any:
        answer = reclaim(keys, ids)
        made.append(enqueue(engine).id)  # the key is the dead job's, which is no reason to wait
        return answer

    monkeypatch.setattr(UniqueKeys, "reclaim", reclaim_and_stumble)
    with pytest.raises(DuplicateJob) as refused:
        engine.jobs.resubmit(first.id)

    assert [refused.value.job_id] == made == [holder(engine)]
    assert steps.state(first.id) == "cancelled"
    assert steps.lease().id == made[0]


def test_a_job_that_is_named_twice_is_resubmitted_once(engine: Engine, steps: Steps) -> None:
    created = enqueue(engine)
    steps.fail(steps.lease(), "dead")

    assert engine.jobs.resubmit_many([created.id, created.id]) == {created.id: None}
    assert engine.jobs.get(created.id).resubmissions == 1
    assert holder(engine) == created.id


def test_producers_and_those_who_resubmit_at_once_never_make_two_live_jobs(engine: Engine, steps: Steps) -> None:
    dead: list[str] = []

    def produce(_: int) -> None:
        for _ in range(8):
            with suppress(OutcomeUnknown):
                enqueue(engine)

    def resubmit(_: int) -> None:
        for _ in range(8):
            with suppress(OutcomeUnknown):
                engine.jobs.resubmit_many(dead[-3:])

    for _ in range(6):
        dead.append(enqueue(engine).id)
        for job in steps.lease_all():
            steps.fail(job, "dead")
        with ThreadPoolExecutor(6) as threads:
            [*threads.map(lambda act: act(0), [produce, resubmit] * 3)]
        live = [job for job in engine.jobs.page().items if not job.is_terminal]
        assert [job.id for job in live] == [holder(engine)]
