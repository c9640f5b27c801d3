"""Random lives of random jobs: the engine on a real server must agree with the plain model after every step.

The number of examples comes from ``MODEL_EXAMPLES``: some in every run of the tests, many thousands in a
nightly one.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from jobs.exceptions import StoreUnavailable
from tests.engine_model.lives import live
from tests.engine_model.machine import machine_on
from tests.engine_model.plays import PLAYS, Play, perform
from tests.support.valkey import ValkeyServer

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "150"))
STEPS = 40


@pytest.mark.parametrize("play", PLAYS, ids=lambda play: play.__name__.replace("_", " "))
def test_the_engine_agrees_with_the_model_through(play: Play, valkey_url: str) -> None:
    perform(play, machine_on(valkey_url))


@pytest.mark.slow
def test_the_engine_agrees_with_the_model_after_every_step(make_valkey: Callable[..., ValkeyServer]) -> None:
    server = make_valkey(appendfsync="everysec")

    def restart() -> None:
        with server.client() as client:
            client.set("last word", 1)
            client.execute_command("WAITAOF", 1, 0, 60_000)  # a busy disk keeps what was said in the second before
        server.kill()
        server.start()

    live(machine_on(server.url, restart=restart), examples=EXAMPLES, steps=STEPS)


def test_a_life_that_fails_only_once_is_told_by_what_failed() -> None:
    class Machine(RuleBasedStateMachine):
        lives = 0

        def __init__(self) -> None:
            super().__init__()
            Machine.lives += 1

        @rule(number=st.integers(0, 9))
        def step(self, number: int) -> None:
            if Machine.lives == 3:
                raise StoreUnavailable("it took too long, this once")

    with pytest.raises(AssertionError, match="it took too long, this once"):
        live(Machine, examples=20, steps=5)
