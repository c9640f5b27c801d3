"""Short scripted lives: the races that queues are known to get wrong, one after another by the machine's own rules.

They need no luck, so a protocol bug that one of them meets is found in a second. Random search goes where nobody
thought of a play.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.engine_model.machine import CALLER_IDS, EngineMachine

Play = Callable[[EngineMachine], None]
LATEST, OLDEST = 7 * 4 + 1, 0  # picks: the newest of the recent leases, the first lease of all
SECOND, THIRD, FOURTH = 1 * 4 + 1, 2 * 4 + 1, 3 * 4 + 1  # of the first eight leases


def take(machine: EngineMachine, count: int = 1, worker: str = "one", **facts: object) -> None:
    """Enqueues ``count`` jobs that are due at once and leases them."""
    wanted = {"pool": "alpha", "type": "mail", "priority": 0, "delay_ms": 0, "max_crashes": 2} | facts
    step(machine, machine.enqueue, count=count, **wanted)
    step(machine, machine.lease, pool="alpha", worker=worker, limit=10)


def lose(machine: EngineMachine) -> None:
    """The lease runs out, is recovered, and another worker takes the job."""
    step(machine, machine.time_passes, seconds=11)
    step(machine, machine.recover, pool="alpha")
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


def step(machine: EngineMachine, verb: Callable[..., None], **arguments: object) -> None:
    verb(**arguments)
    machine.both_agree()


def a_late_completion(machine: EngineMachine) -> None:
    take(machine)
    lose(machine)
    step(machine, machine.complete, pick=OLDEST, result=None, ttl_ms=None)


def a_late_failure(machine: EngineMachine) -> None:
    take(machine)
    lose(machine)
    step(machine, machine.fail, pick=OLDEST, outcome="dead", delay_ms=0)


def a_late_release_crash_and_park(machine: EngineMachine) -> None:
    take(machine)
    lose(machine)
    step(machine, machine.release, pick=OLDEST, charged=False)
    step(machine, machine.crash, pick=OLDEST)
    step(machine, machine.park, pick=OLDEST)


def a_late_renewal(machine: EngineMachine) -> None:
    take(machine)
    lose(machine)
    step(machine, machine.time_passes, seconds=4)
    step(machine, machine.renew_all_of_a_worker, pick=OLDEST)


def an_end_that_is_told_twice(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.complete, pick=OLDEST, result=b"1", ttl_ms=None)
    step(machine, machine.complete, pick=OLDEST, result=b"1", ttl_ms=None)
    step(machine, machine.fail, pick=OLDEST, outcome="dead", delay_ms=0)


def recovery_while_leases_hold(machine: EngineMachine) -> None:
    take(machine, count=2)
    step(machine, machine.recover, pool="alpha")
    step(machine, machine.time_passes, seconds=4)
    step(machine, machine.recover, pool="alpha")


def recovery_after_the_job_went_on(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.time_passes, seconds=11)
    step(machine, machine.recover, pool="alpha")
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)
    step(machine, machine.complete, pick=1, result=None, ttl_ms=None)
    take(machine)
    step(machine, machine.time_passes, seconds=11)
    step(machine, machine.recover, pool="alpha")


def a_jump_of_the_clock(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.recover, pool="alpha")
    step(machine, machine.the_clock_jumps, seconds=86_400)
    step(machine, machine.recover, pool="alpha")
    step(machine, machine.time_passes, seconds=11)
    step(machine, machine.recover, pool="alpha")


def a_clock_that_goes_back(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.the_clock_jumps, seconds=-3600)
    take(machine, worker="two")
    step(machine, machine.renew_all_of_a_worker, pick=OLDEST)


def due_together(machine: EngineMachine) -> None:
    facts = {"pool": "alpha", "type": "mail", "max_crashes": 2}
    step(machine, machine.enqueue, count=5, priority=0, delay_ms=5000, **facts)
    step(machine, machine.enqueue, count=2, priority=7, delay_ms=5000, **facts)
    step(machine, machine.time_passes, seconds=4)
    step(machine, machine.promote, pool="alpha")
    step(machine, machine.time_passes, seconds=1)
    step(machine, machine.promote, pool="alpha")
    step(machine, machine.lease, pool="alpha", worker="one", limit=10)


def a_pause(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.enqueue, pool="alpha", type="mail", priority=0, delay_ms=0, max_crashes=2, count=1)
    step(machine, machine.pause, pool="alpha", seconds=None)
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)
    lose(machine)
    step(machine, machine.resume, pool="alpha")
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


def a_lease_asked_for_again(machine: EngineMachine) -> None:
    step(machine, machine.enqueue, pool="alpha", type="mail", priority=0, delay_ms=0, max_crashes=2, count=5)
    step(machine, machine.lease, pool="alpha", worker="one", limit=2)
    step(machine, machine.lease_again_with_the_same_token, pick=0)


def a_bundle_that_ends_job_by_job(machine: EngineMachine) -> None:
    take(machine, count=5)
    step(machine, machine.complete, pick=LATEST, result=None, ttl_ms=None)
    step(machine, machine.fail, pick=OLDEST, outcome="retry", delay_ms=0)
    step(machine, machine.start, pick=FOURTH)
    step(machine, machine.complete, pick=SECOND, result=b"1", ttl_ms=1_000)
    step(machine, machine.complete, pick=THIRD, result=None, ttl_ms=None)
    step(machine, machine.complete, pick=FOURTH, result=None, ttl_ms=None)


def a_bundle_of_which_a_part_is_renewed(machine: EngineMachine) -> None:
    take(machine, count=5)
    step(machine, machine.start, pick=THIRD)
    step(machine, machine.complete, pick=FOURTH, result=None, ttl_ms=None)
    step(machine, machine.time_passes, seconds=5)
    step(machine, machine.renew_one, pick=OLDEST)
    step(machine, machine.time_passes, seconds=5)
    step(machine, machine.recover, pool="alpha")
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


def a_bundle_that_is_renewed_and_lost(machine: EngineMachine) -> None:
    take(machine, count=5)
    step(machine, machine.complete, pick=FOURTH, result=None, ttl_ms=None)
    step(machine, machine.time_passes, seconds=5)
    step(machine, machine.renew_all_of_a_worker, pick=OLDEST)
    step(machine, machine.time_passes, seconds=5)
    step(machine, machine.recover, pool="alpha")
    lose(machine)


def a_bundle_whose_jobs_are_cancelled_and_handed_back(machine: EngineMachine) -> None:
    take(machine, count=5, priority=7)
    step(machine, machine.cancel, pick=0)
    step(machine, machine.complete, pick=OLDEST, result=None, ttl_ms=None)
    step(machine, machine.release, pick=SECOND, charged=False)
    step(machine, machine.park, pick=THIRD)
    step(machine, machine.crash, pick=FOURTH)
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


def a_bundle_that_is_looked_at(machine: EngineMachine) -> None:
    take(machine, count=5)
    step(machine, machine.complete, pick=FOURTH, result=None, ttl_ms=None)
    step(machine, machine.list_what_is_leased, pool="alpha")
    step(machine, machine.lease_again_with_the_same_token, pick=0)
    step(machine, machine.complete, pick=OLDEST, result=None, ttl_ms=None)


def a_bundle_in_a_pool_with_a_cap(machine: EngineMachine) -> None:
    take(machine, count=2)
    step(machine, machine.cap, pool="alpha", max_running=3)
    take(machine, count=5, worker="two")
    step(machine, machine.complete, pick=OLDEST, result=None, ttl_ms=None)
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


def an_unknown_type(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.park, pick=OLDEST)
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)
    step(machine, machine.unpark, pool="alpha", type="mail")
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


def a_poison_job(machine: EngineMachine) -> None:
    take(machine, max_crashes=2)
    for _ in range(2):
        step(machine, machine.crash, pick=LATEST)
        step(machine, machine.lease, pool="alpha", worker="two", limit=10)
    step(machine, machine.resubmit, pick=0)
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)
    step(machine, machine.crash, pick=LATEST)


def a_release_between_others(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.enqueue, pool="alpha", type="report", priority=0, delay_ms=0, max_crashes=2, count=2)
    step(machine, machine.release, pick=OLDEST, charged=False)
    step(machine, machine.lease, pool="alpha", worker="two", limit=1)


def a_cancellation_of_what_runs(machine: EngineMachine) -> None:
    take(machine)
    step(machine, machine.cancel, pick=0)
    lose(machine)
    take(machine)
    step(machine, machine.cancel, pick=1)
    step(machine, machine.complete, pick=LATEST, result=b"1", ttl_ms=None)


def an_id_used_twice(machine: EngineMachine) -> None:
    for _ in range(2):
        step(machine, machine.enqueue_under_an_id, job_id=CALLER_IDS[0], pool="alpha", priority=0, delay_ms=0)


def a_clock_that_goes_back_after_an_id_was_refused(machine: EngineMachine) -> None:
    for _ in range(2):
        step(machine, machine.enqueue_under_an_id, job_id=CALLER_IDS[0], pool="alpha", priority=0, delay_ms=0)
        step(machine, machine.time_passes, seconds=0.001)
    step(machine, machine.the_clock_jumps, seconds=-3600)
    step(machine, machine.enqueue, pool="alpha", type="mail", priority=0, delay_ms=5000, max_crashes=2, count=1)


def a_clock_that_goes_back_after_a_full_pool_refused(machine: EngineMachine) -> None:
    wanted = {"pool": "alpha", "type": "mail", "priority": 0, "delay_ms": 1, "max_crashes": 2}
    step(machine, machine.limit_the_backlog, pool="alpha", max_pending=1)
    step(machine, machine.enqueue, count=2, **wanted)
    step(machine, machine.the_clock_jumps, seconds=-3600)
    step(machine, machine.enqueue, count=1, **wanted)


def claims_that_were_swept_before_the_clock_went_back(machine: EngineMachine) -> None:
    wanted = {"key": "k1", "pool": "alpha", "type": "mail", "until": 30.0, "on_duplicate": "return", "delay_ms": 0}
    step(machine, machine.enqueue_unique, **wanted)
    step(machine, machine.the_clock_jumps, seconds=120)
    step(machine, machine.sweep_claims)
    step(machine, machine.the_clock_jumps, seconds=-3600)
    step(machine, machine.enqueue_unique, **wanted)


def a_unique_key_until_the_start(machine: EngineMachine) -> None:
    wanted = {"key": "k1", "pool": "alpha", "type": "mail", "until": "started", "on_duplicate": "return", "delay_ms": 0}
    step(machine, machine.enqueue_unique, **wanted)
    step(machine, machine.lease, pool="alpha", worker="one", limit=10)
    step(machine, machine.enqueue_unique, **wanted)  # leased is not started
    lose(machine)
    step(machine, machine.enqueue_unique, **wanted)
    step(machine, machine.start, pick=LATEST)
    step(machine, machine.enqueue_unique, **wanted)


def a_unique_key_that_several_had_who_come_back_at_once(machine: EngineMachine) -> None:
    wanted = {"pool": "alpha", "type": "mail", "on_duplicate": "return", "delay_ms": 0}
    for number, (key, until) in enumerate([("k1", "finished"), ("k2", "started"), ("k1", "finished"), ("k2", 30.0)]):
        step(machine, machine.enqueue_unique, key=key, until=until, **wanted)
        step(machine, machine.cancel, pick=number)
    step(machine, machine.resubmit_all)
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


def a_unique_key_wanted_twice(machine: EngineMachine) -> None:
    for on_duplicate in ("return", "raise", "replace", "return"):
        step(
            machine,
            machine.enqueue_unique,
            key="k1",
            pool="alpha",
            type="mail",
            until="finished",
            on_duplicate=on_duplicate,
            delay_ms=0,
        )


def a_retry_of_high_priority(machine: EngineMachine) -> None:
    take(machine, priority=7)
    step(machine, machine.fail, pick=OLDEST, outcome="retry", delay_ms=5000)
    step(machine, machine.time_passes, seconds=5)
    step(machine, machine.lease, pool="alpha", worker="two", limit=10)


PLAYS: tuple[Play, ...] = (
    a_late_completion,
    a_late_failure,
    a_late_release_crash_and_park,
    a_late_renewal,
    an_end_that_is_told_twice,
    recovery_while_leases_hold,
    recovery_after_the_job_went_on,
    a_jump_of_the_clock,
    a_clock_that_goes_back,
    due_together,
    a_pause,
    a_lease_asked_for_again,
    a_bundle_that_ends_job_by_job,
    a_bundle_of_which_a_part_is_renewed,
    a_bundle_that_is_renewed_and_lost,
    a_bundle_whose_jobs_are_cancelled_and_handed_back,
    a_bundle_that_is_looked_at,
    a_bundle_in_a_pool_with_a_cap,
    an_unknown_type,
    a_poison_job,
    a_release_between_others,
    a_cancellation_of_what_runs,
    an_id_used_twice,
    a_clock_that_goes_back_after_an_id_was_refused,
    a_clock_that_goes_back_after_a_full_pool_refused,
    claims_that_were_swept_before_the_clock_went_back,
    a_unique_key_until_the_start,
    a_unique_key_that_several_had_who_come_back_at_once,
    a_unique_key_wanted_twice,
    a_retry_of_high_priority,
)


def perform(play: Play, machine_class: type[EngineMachine]) -> None:
    """The play on a machine of its own; raises where engine and model part."""
    machine = machine_class()
    try:
        machine.create_pools()
        play(machine)
    finally:
        machine.teardown()
