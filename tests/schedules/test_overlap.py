"""What becomes of a firing while the job before it has not ended."""

from __future__ import annotations

from tests.schedules.conftest import World


def test_skip_leaves_out_what_would_run_beside_the_job_before(world: World) -> None:
    world.schedule(overlap="skip")
    world.run(60)
    first = world.jobs()[0].id
    world.run(60)
    world.end(first)
    world.run(60)

    assert world.fired() == [1, 3]
    assert world.skipped() == [(2, f"the job before has not ended: {first}")]


def test_queue_one_lets_one_wait_until_the_job_before_has_ended(world: World) -> None:
    world.schedule(overlap="queue_one")
    world.run(180)
    assert world.fired() == [1]

    world.end(world.jobs()[0].id)
    world.run(2)
    assert world.fired() == [1, 2]
    assert world.skipped() == [(3, "another firing waits already")]


def test_cancel_old_ends_a_waiting_job_and_takes_its_place(world: World) -> None:
    world.schedule(overlap="cancel_old")
    world.run(120)

    assert [job.state for job in world.jobs()] == ["cancelled", "ready"]


def test_cancel_old_waits_for_a_job_that_is_being_cancelled(world: World) -> None:
    world.schedule(overlap="cancel_old")
    world.run(60)
    running = world.lease(world.jobs()[0].id)
    world.run(60)
    assert world.fired() == [1]
    assert world.engine.jobs.get(running.id).cancel_requested

    world.engine.leases.release(running.route, [(running.id, running.token)])
    world.run(1)
    assert world.fired() == [1, 2]


def test_a_job_that_was_moved_has_not_ended_for_its_schedule(world: World) -> None:
    world.schedule(overlap="skip")
    world.run(60)
    [first] = world.jobs()
    world.engine.topology.ensure("slow")
    world.engine.moving.move([first.id], "slow", move="m1", at_ms=1)
    world.run(60)
    assert set(world.fired()) == {1}

    world.engine.jobs.cancel(world.engine.jobs.get(first.id).moved_to)
    world.run(60)

    assert set(world.fired()) == {1, 3}
