from __future__ import annotations

from jobs.runtime.service import service_loop
from tests.support.wait import eventually


class Duty:
    name = "duty"
    every = 60.0

    def __init__(self) -> None:
        self.done: list[str] = []

    def tick(self) -> dict[str, int]:
        self.done.append("tick")
        return {"done": len(self.done)}


class HearingDuty(Duty):
    def hear(self) -> None:
        self.done.append("hear")


def test_a_service_hears_of_a_change_before_the_tick_that_it_asked_for_and_only_then() -> None:
    duty = HearingDuty()
    loop = service_loop(duty)
    loop.start()
    eventually(lambda: duty.done == ["tick"])
    loop.nudge()
    eventually(lambda: duty.done == ["tick", "hear", "tick"])
    loop.stop(1.0)


def test_a_service_that_does_the_same_in_each_tick_need_not_hear_and_each_tick_tells_what_it_did() -> None:
    duty, told = Duty(), []
    loop = service_loop(duty, told.append)
    loop.start()
    eventually(lambda: told == [{"done": 1}])
    loop.nudge()
    eventually(lambda: told == [{"done": 1}, {"done": 2}])
    loop.stop(1.0)
