"""Jobs of schedules pass the project's enqueue middleware."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from jobs import job
from jobs.api.producer import led_through
from tests.schedules.conftest import World


def stamped(call: Any) -> Any:
    """A middleware that adds to the request, tries to move it, and enqueues something of its own beside it."""

    def enqueue(request: Any) -> Any:
        if request.spec.schedule is not None:
            stamp_job.enqueue(number=0)
            changes = {"meta": {"origin": "middleware"}, "pool": "elsewhere", "schedule": "another"}
            request.spec = msgspec.structs.replace(request.spec, **changes)
            request.payloads = [b'{"number": 5}']
        return call(request)

    return enqueue


def refusing(call: Any) -> Any:
    def enqueue(request: Any) -> Any:
        raise ZeroDivisionError("no")

    return enqueue


def dropping(call: Any) -> Any:
    return lambda request: []


@job("schedules.stamp")
def stamp_job(number: int) -> None: ...


@pytest.fixture
def through(world: World, settings: Any) -> Any:
    """Has the project's enqueue middleware be these, and a host that knows them."""

    def use(*names: str) -> None:
        paths = [f"{__name__}.{name}" for name in names]
        settings.SCHEDULER = {**settings.SCHEDULER, "ENQUEUE_MIDDLEWARE": paths}
        world.ticker._through = led_through

    return use


def test_jobs_of_schedules_pass_the_enqueue_middleware_and_stay_jobs_of_their_firing(
    world: World, through: Any
) -> None:
    through("stamped")
    world.schedule()
    world.run(120)

    assert world.fired() == [1, 2]
    assert {(job.pool, job.meta["origin"], job.payload["number"]) for job in world.jobs()} == {
        ("default", "middleware", 5)
    }


@pytest.mark.parametrize(
    ("middleware", "reason"),
    [
        ("refusing", "An enqueue middleware failed: ZeroDivisionError: no"),
        ("dropping", "An enqueue middleware did not send it on."),
    ],
)
def test_a_firing_that_enqueue_middleware_stops_is_skipped_and_says_why(
    world: World, through: Any, middleware: str, reason: str
) -> None:
    through(middleware)
    world.schedule()
    world.run(60)

    assert world.fired() == []
    assert world.skipped() == [(1, reason)]
