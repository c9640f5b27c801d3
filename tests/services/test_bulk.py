"""Bulk operations: chosen once, carried out part by part by any host, stopped midway, never done twice to a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from jobs.core.bulk import LIVE
from jobs.core.job import moment
from jobs.core.states import JobState
from jobs.engine import BulkOperation, Engine, JobFilter, new_token
from jobs.engine.bulk import HOLD_MS, PARTS_READ, BulkNotFound, BulkRequest, Part
from jobs.exceptions import LeaseLost, StoreUnavailable, WrongState
from jobs.services.bulk import IDLE_SECONDS, BulkWorker
from tests.support.clock import ManualClock


@pytest.fixture
def cancelled(engine: Engine, enqueue: Callable[..., list[str]]) -> Callable[[int], list[str]]:
    """``cancelled(3)``: so many jobs that can be resubmitted."""

    def make(count: int) -> list[str]:
        ids = enqueue(count)
        for id in ids:
            engine.jobs.cancel(id)
        return ids

    return make


@pytest.fixture
def begin(engine: Engine, clock: ManualClock) -> Callable[..., BulkOperation]:
    """``begin(confirmed=3)``: a resubmit of everything that is cancelled now."""

    def open_(
        action: Any = "resubmit", *, confirmed: int = 1_000_000, begins_ms: int = 0, **facts: Any
    ) -> BulkOperation:
        states = facts.pop("states", (JobState.CANCELLED,))
        filter = JobFilter(states=states, until=moment(clock.now_ms()), **facts.pop("filter", {}))
        request = BulkRequest(action=action, filter=filter, by="ana", **facts)
        id = new_token()[:8]
        engine.bulk.open(id, request, confirmed=confirmed, begins_ms=begins_ms)
        return engine.bulk.get(id)

    return open_


def states(engine: Engine, ids: list[str]) -> set[str]:
    return {engine.jobs.get(id).state.value for id in ids}


def counts(operation: BulkOperation) -> tuple[str, int, int, int, int]:
    return operation.state, operation.total, operation.done, operation.refused, operation.unsure


def test_all_that_matched_are_acted_on_and_nothing_that_came_later(
    engine: Engine, clock: ManualClock, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    ids = cancelled(450)
    operation = begin()
    clock.advance(1)
    late = cancelled(1)

    assert BulkWorker(engine).tick() == {"parts": 4}  # a look through the list, and three parts

    assert counts(engine.bulk.get(operation.id)) == ("done", 450, 450, 0, 0)
    assert states(engine, ids) == {"ready"}
    assert states(engine, late) == {"cancelled"}
    assert BulkWorker(engine).tick() == {"parts": 0}


def test_what_could_not_be_done_is_told_job_by_job(
    engine: Engine, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    ids = cancelled(3)
    operation = begin(confirmed=0)
    worker = BulkWorker(engine)
    worker.tick()
    engine.jobs.resubmit(ids[0])
    engine.jobs.discard(ids[1])
    engine.bulk.confirm(operation.id, 3)

    worker.tick()

    assert counts(engine.bulk.get(operation.id)) == ("done", 3, 1, 2, 0)
    refused = engine.bulk.refusals(operation.id, 10)
    assert set(refused) == set(ids[:2])
    assert "is ready" in refused[ids[0]]
    assert dict(engine.bulk.part(operation.id, 0))[ids[2]] is None


def test_of_many_refusals_the_first_are_told(
    engine: Engine,
    cancelled: Callable[[int], list[str]],
    begin: Callable[..., BulkOperation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jobs.services.bulk.PART", 1)
    ids = cancelled(PARTS_READ + 2)
    operation = begin(confirmed=0)
    worker = BulkWorker(engine)
    worker.tick()
    engine.jobs.discard_many(ids)
    engine.bulk.confirm(operation.id, len(ids))
    worker.tick()

    assert set(engine.bulk.refusals(operation.id, 100)) == set(ids)
    first = [id for number in range(3) for id, _ in engine.bulk.part(operation.id, number)]
    assert list(engine.bulk.refusals(operation.id, 3)) == first


def test_more_than_were_confirmed_wait_for_their_number(
    engine: Engine, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    ids = cancelled(3)
    operation = begin(confirmed=2)
    BulkWorker(engine).tick()

    assert counts(engine.bulk.get(operation.id)) == ("waiting", 3, 0, 0, 0)
    with pytest.raises(WrongState, match="on 3 jobs, not 2"):
        engine.bulk.confirm(operation.id, 2)
    assert states(engine, ids) == {"cancelled"}
    engine.bulk.confirm(operation.id, 3)
    BulkWorker(engine).tick()
    assert states(engine, ids) == {"ready"}


def test_it_is_cancelled_midway(
    engine: Engine, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    ids = cancelled(450)
    operation = begin()
    worker = BulkWorker(engine)
    worker.step()
    worker.step()

    assert engine.bulk.cancel(operation.id) == "cancelled"

    assert worker.tick() == {"parts": 0}
    assert counts(engine.bulk.get(operation.id)) == ("cancelled", 450, 200, 0, 0)
    assert sum(engine.jobs.get(id).state == JobState.READY for id in ids) == 200
    with pytest.raises(WrongState, match="it is over"):
        engine.bulk.cancel(operation.id)


def test_a_part_in_hand_is_settled_before_it_is_cancelled(
    engine: Engine, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    cancelled(450)
    operation = begin()
    worker = BulkWorker(engine)
    worker.step()
    part = engine.bulk.take("t")
    assert isinstance(part, Part)

    assert engine.bulk.cancel(operation.id) == "stopping"
    worker._act(part)

    assert counts(engine.bulk.get(operation.id)) == ("cancelled", 450, 200, 0, 0)


class TestWhenAHostDies:
    @pytest.fixture
    def half_done(
        self, engine: Engine, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
    ) -> tuple[BulkOperation, list[str]]:
        """Its host did a third of a part, one job of which has ended again since, and died."""
        ids = cancelled(300)
        operation = begin()
        BulkWorker(engine).step()
        part = engine.bulk.take("the dead host's")
        assert isinstance(part, Part)
        engine.jobs.resubmit_many(part.ids[:60])
        return operation, ids

    def test_another_goes_on_when_the_claim_is_over_and_does_nothing_twice(
        self, engine: Engine, clock: ManualClock, half_done: tuple[BulkOperation, list[str]]
    ) -> None:
        operation, ids = half_done
        other = BulkWorker(engine)
        assert other.tick() == {"parts": 0}
        assert other.every == pytest.approx(HOLD_MS / 1000, abs=0.1)
        ended_again = next(id for id in ids if engine.jobs.get(id).state == JobState.READY)
        clock.advance(HOLD_MS / 1000 + 0.001)
        engine.jobs.cancel(ended_again)

        other.tick()

        assert counts(engine.bulk.get(operation.id)) == ("done", 300, 240, 0, 60)
        assert {engine.jobs.get(id).resubmissions for id in ids} == {1}
        assert engine.jobs.get(ended_again).state == JobState.CANCELLED

    def test_a_host_that_was_only_slow_writes_nothing_down(
        self, engine: Engine, clock: ManualClock, half_done: tuple[BulkOperation, list[str]]
    ) -> None:
        operation, _ = half_done
        slow = engine.bulk.get(operation.id)
        clock.advance(HOLD_MS / 1000 + 0.001)
        BulkWorker(engine).step()
        before = engine.bulk.get(operation.id)

        with pytest.raises(LeaseLost):
            engine.bulk.settle(Part(slow, "the dead host's", [], False), done=9, refused={}, unsure=0, pause_ms=0)

        assert engine.bulk.get(operation.id) == before

    def test_stopped_meanwhile_it_ends_and_says_what_is_not_known(
        self, engine: Engine, clock: ManualClock, half_done: tuple[BulkOperation, list[str]]
    ) -> None:
        operation, _ = half_done
        assert engine.bulk.cancel(operation.id) == "stopping"
        clock.advance(HOLD_MS / 1000 + 0.001)

        BulkWorker(engine).tick()

        assert counts(engine.bulk.get(operation.id)) == ("cancelled", 300, 0, 0, 200)


def test_a_rate_is_kept(
    engine: Engine, clock: ManualClock, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    cancelled(25)
    operation = begin(rate=10.0)
    worker = BulkWorker(engine)

    done = []
    for _ in range(3):
        worker.tick()
        done.append(engine.bulk.get(operation.id).done)
        clock.advance(1)

    assert done == [10, 20, 25]
    assert worker.every <= IDLE_SECONDS


def test_after_a_trial_it_waits_for_a_word(
    engine: Engine, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    cancelled(10)
    operation = begin(trial=1)
    worker = BulkWorker(engine)
    worker.tick()
    assert counts(engine.bulk.get(operation.id)) == ("waiting", 10, 1, 0, 0)

    engine.bulk.confirm(operation.id, 10)
    worker.tick()

    assert counts(engine.bulk.get(operation.id)) == ("done", 10, 10, 0, 0)


def test_it_can_be_called_off_until_it_begins(
    engine: Engine, clock: ManualClock, cancelled: Callable[[int], list[str]], begin: Callable[..., BulkOperation]
) -> None:
    ids = cancelled(3)
    called_off = begin("discard", begins_ms=30_000)
    worker = BulkWorker(engine)
    worker.tick()
    engine.bulk.cancel(called_off.id)
    clock.advance(31)
    worker.tick()
    assert states(engine, ids) == {"cancelled"}

    begin("discard", begins_ms=30_000)
    worker.tick()
    assert states(engine, ids) == {"cancelled"}
    clock.advance(31)
    worker.tick()

    assert engine.jobs.get_many(ids) == [None] * 3


def test_a_resubmit_is_taken_back_as_far_as_it_has_not_begun(
    engine: Engine,
    cancelled: Callable[[int], list[str]],
    lease: Callable[..., list[Any]],
    begin: Callable[..., BulkOperation],
) -> None:
    ids = cancelled(5)
    done = begin()
    worker = BulkWorker(engine)
    worker.tick()
    running = [job.id for job in lease(2)]

    undo = begin("cancel", undoes=done.id)
    worker.tick()

    assert counts(engine.bulk.get(undo.id)) == ("done", 5, 3, 2, 0)
    assert set(engine.bulk.refusals(undo.id, 9)) == set(running)
    assert states(engine, [id for id in ids if id not in running]) == {"cancelled"}


def test_live_jobs_are_cancelled_from_where_they_come_to_where_they_go(
    engine: Engine,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[Any]],
    begin: Callable[..., BulkOperation],
) -> None:
    ids = [*enqueue(3), *enqueue(2, delay_ms=60_000)]
    lease(1)
    operation = begin("cancel", states=LIVE)

    BulkWorker(engine).tick()

    assert counts(engine.bulk.get(operation.id)) == ("done", 5, 5, 0, 0)
    assert sum(engine.jobs.get(id).cancel_requested for id in ids) == 1


def test_a_stretch_of_the_list_that_could_not_be_written_down_is_chosen_again(
    engine: Engine,
    clock: ManualClock,
    enqueue: Callable[..., list[str]],
    begin: Callable[..., BulkOperation],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ids = enqueue(3)
    operation = begin("cancel", states=(JobState.READY,))
    worker = BulkWorker(engine)
    with monkeypatch.context() as away:
        away.setattr(engine.bulk, "select", Mock(side_effect=StoreUnavailable))
        with pytest.raises(StoreUnavailable):
            worker.tick()
    clock.advance(HOLD_MS / 1000 + 0.001)

    worker.tick()

    assert counts(engine.bulk.get(operation.id)) == ("done", 3, 3, 0, 0)
    assert states(engine, ids) == {"cancelled"}


def test_asked_for_twice_it_is_one_operation(engine: Engine, begin: Callable[..., BulkOperation]) -> None:
    once = begin()

    assert not engine.bulk.open(once.id, once.request, confirmed=0)
    assert [operation.id for operation in engine.bulk.newest()] == [once.id]


def test_old_ones_make_room_with_all_that_they_hold(
    engine: Engine,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    cancelled: Callable[[int], list[str]],
    begin: Callable[..., BulkOperation],
) -> None:
    monkeypatch.setattr("jobs.engine.bulk.OPERATIONS_KEPT", 2)
    cancelled(1)
    first = begin()
    BulkWorker(engine).tick()
    for _ in range(2):
        clock.advance(1)
        begin()
        BulkWorker(engine).tick()

    with pytest.raises(BulkNotFound):
        engine.bulk.get(first.id)
    keys = engine.store.read(lambda client: client.keys("*"))
    assert not [key for key in keys if first.id.encode() in key]
