"""Whatever is done to a run, whoever does it may die before any of his calls to the store: in the end it stands as if
it had been done, or as if it had not, within a lease and five seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import pytest

from jobs import job
from jobs.core.job import LeasedJob
from jobs.engine import Engine, run_nodes
from jobs.runtime import controlling
from jobs.runtime.growing import grow
from jobs.services.deadlines import DeadlineService
from jobs.services.relay import EVERY_SECONDS, RelayService
from jobs.store.connection import Store
from tests.support.clock import ManualClock
from tests.support.runs import Runs

WITHIN_SECONDS = 10.0 + 5.0
WHY = {"by": "ann", "at": "2026-01-01T00:00:00.000Z", "reason": "wrong day"}

SKIPPED = {"type": "Skipped", "message": "ann skipped it", "traceback": ""}


@job("dying.node")
def node() -> None: ...


class Died(BaseException):
    """The process is gone."""


class Seen(NamedTuple):
    """All that can be seen of a run that is over."""

    state: str
    nodes: dict[str, str]
    ran: Counter[str]
    jobs: dict[str, str]


@dataclass
class Play:
    """``act`` is done to a run of ``nodes`` after ``before``; who died over it does it again where ``is_repeated``."""

    nodes: list[dict[str, Any]]
    act: Callable[[Runs, str], object]
    before: Callable[[Runs, str], object] = lambda runs, run: None
    is_repeated: bool = False
    is_told_to_stop: bool = False
    """What runs ends when services have had the time to ask it to stop."""
    outcomes: dict[str, str] = field(default_factory=dict)
    results: dict[str, Any] = field(default_factory=dict)


SUB = {"name": "inner", "nodes": [{"key": "x", "type": "t"}, {"key": "y", "type": "t", "depends_on": ["x"]}]}
GROUPS: list[dict[str, Any]] = [
    {"key": "list"},
    {"key": "page", "each": {"$from": "list.result"}, "depends_on": ["list"]},
    {"key": "sub", "type": "", "workflow": SUB, "depends_on": ["list"]},
    {"key": "shop", "type": "", "workflow": SUB, "each": [1, 2], "on_complete": ["list"]},
    {"key": "go", "type": "", "approval": "?", "timeout": 3, "on_timeout": "continue", "depends_on": ["list"]},
    {"key": "end", "depends_on": ["page", "sub", "shop", "go"]},
]
OUTER = {"name": "outer", "nodes": [{"type": "t", **each} for each in GROUPS[:4]]}
CHAIN: list[dict[str, Any]] = [
    {"key": "a"},
    {"key": "b", "depends_on": ["a"]},
    {"key": "alarm", "on_failure": ["a", "b"], "join": "any"},
    {"key": "clean", "on_complete": ["b"], "always": True},
]
WAIT: list[dict[str, Any]] = [
    {"key": "paid", "type": "", "signal": "paid", "timeout": 5},
    {"key": "ship", "depends_on": ["paid"]},
    {"key": "sorry", "on_failure": ["paid"]},
]


def end_lists(runs: Runs) -> None:
    """The list is there, the first of its items run, and their run has heard of it."""
    (leased,) = runs.lease()
    runs.end(leased, result=[1, 2])
    runs.lease(limit=2)


def end_first(outcome: str, result: Any = None) -> Callable[[Runs, str], None]:
    """The first job ends, and its run has not heard of it."""

    def end(runs: Runs, run: str) -> None:
        for leased in runs.lease():
            runs.end(leased, outcome, result=result, tell=False)

    return end


def tell(runs: Runs, run: str) -> None:
    for route in runs.engine.topology.partitions():
        for ids in runs.engine.outbox.waiting(route):
            runs.relay.tell(route, ids)


def signal(runs: Runs, run: str) -> None:
    runs.engine.workflows.touch(run)
    runs.engine.run_control.signal(run, "paid", 1)
    runs.relay.pursue(run)


def reject(runs: Runs, run: str) -> None:
    runs.engine.workflows.touch(run)
    runs.engine.run_control.decide(run, "paid", error={"type": "Rejected", "message": "no", "traceback": ""})
    runs.relay.pursue(run)


def let_time_pass(runs: Runs, run: str) -> None:
    runs.engine.workflows._clock.advance(6)  # type: ignore[attr-defined]
    DeadlineService(runs.engine).tick()


def add_nodes(runs: Runs, run: str) -> None:
    many = [{"key": f"m{number}", "type": "dying.node", "depends_on": ["a"]} for number in range(12)]
    after = {"key": "after", "type": "dying.node", "depends_on": [each["key"] for each in many]}
    grow(runs.relay, run, "a", [*many, after])


def resubmit(runs: Runs, run: str) -> None:
    view = runs.nodes(run)["a"]
    runs.engine.jobs.resubmit(view.job or "")
    runs.relay.tell_of([view.job or ""])


PLAYS = {
    "an end is told": Play(CHAIN, tell, end_first("succeeded")),
    "a death is told": Play(CHAIN, tell, end_first("dead")),
    "groups open": Play(GROUPS, tell, end_first("succeeded", [1, 2])),
    "the last ends": Play([{"key": "a"}], tell, end_first("succeeded")),
    "a handler adds nodes": Play(
        [{"key": "a"}, {"key": "b", "depends_on": ["a"]}], add_nodes, lambda runs, run: runs.lease(), is_repeated=True
    ),
    "a run is cancelled": Play(
        [*CHAIN, *GROUPS],
        lambda runs, run: controlling.cancel(runs.relay, run, WHY),
        lambda runs, run: runs.lease(),
        is_told_to_stop=True,
    ),
    "what failed is retried": Play(
        CHAIN,
        lambda runs, run: controlling.retry(runs.relay, run),
        lambda runs, run: runs.run_all({"b": "dead", "alarm": "dead"}),
    ),
    "all is retried from a node": Play(
        GROUPS,
        lambda runs, run: controlling.retry(runs.relay, run, "list"),
        lambda runs, run: (runs.run_all(list=[7, 8, 9]), let_time_pass(runs, run), runs.run_all()),
        results={"list": [7]},
    ),
    "a run is paused": Play(
        CHAIN, lambda runs, run: controlling.pause(runs.relay, run, WHY, wait=0), lambda runs, run: runs.lease()
    ),
    "a run goes on": Play(
        CHAIN,
        lambda runs, run: controlling.resume(runs.relay, run),
        lambda runs, run: controlling.pause(runs.relay, run, WHY),
    ),
    "a paused run is cancelled": Play(
        CHAIN,
        lambda runs, run: controlling.cancel(runs.relay, run, WHY),
        lambda runs, run: controlling.pause(runs.relay, run, WHY),
        is_told_to_stop=True,
    ),
    "a node is skipped while it runs": Play(
        CHAIN,
        lambda runs, run: controlling.skip(runs.relay, run, "a", None, SKIPPED),
        lambda runs, run: runs.lease(),
        is_told_to_stop=True,
        outcomes={"a": "dead"},
    ),
    "the last node is skipped while it runs": Play(
        CHAIN[:1],
        lambda runs, run: controlling.skip(runs.relay, run, "a", None, SKIPPED),
        lambda runs, run: runs.lease(),
        is_told_to_stop=True,
        outcomes={"a": "dead"},
    ),
    "a signal comes": Play(WAIT, signal),
    "a person says no": Play(WAIT, reject),
    "a wait takes too long": Play(WAIT, let_time_pass),
    "a sub-workflow takes too long": Play(
        [{"key": "sub", "type": "", "workflow": OUTER, "timeout": 5}, {"key": "after", "on_failure": ["sub"]}],
        let_time_pass,
        lambda runs, run: end_lists(runs),
        is_told_to_stop=True,
    ),
    "a dead job is resubmitted": Play(CHAIN, resubmit, lambda runs, run: runs.run_all({"a": "dead"})),
}


@contextmanager
def dying(store: Store, before: int) -> Iterator[list[int]]:
    """The process dies before the call of this number; how many it has begun."""
    begun: list[int] = []
    call = store._call

    def mortal(*arguments: Any, **options: Any) -> Any:
        if len(begun) + 1 == before:
            raise Died
        begun.append(1)
        return call(*arguments, **options)

    store._call = mortal  # type: ignore[method-assign, assignment]
    try:
        yield begun
    finally:
        store._call = call  # type: ignore[method-assign]


def finish(engine: Engine, runs: Runs, run: str, play: Play, clock: ManualClock) -> Seen:
    """What becomes of the run where services and workers do what they do, jobs taking no time."""
    begun = clock.now_ms()
    services = RelayService(engine), DeadlineService(engine)
    for service in services * 2 if play.is_told_to_stop else ():
        clock.advance(EVERY_SECONDS / 2)
        service.tick()
    for held in list(runs.held):
        end(runs, held, play)
    while True:
        if runs.facts(run).paused:  # somebody sees it, and has it go on
            controlling.resume(runs.relay, run)
        while leased := runs.lease():
            for each in leased:
                end(runs, each, play)
        if runs.facts(run).is_over:
            break
        clock.advance(EVERY_SECONDS)
        for service in services:
            service.tick()
        assert clock.now_ms() - begun <= WITHIN_SECONDS * 1000, f"stuck: {runs.states(run)}"
    for _ in range(2):
        clock.advance(EVERY_SECONDS)
        services[0].tick()
    assert engine.outbox.routes_with_news(engine.topology.partitions()) == []
    jobs = {key: engine.jobs.get(view.job).state.value for key, view in runs.nodes(run).items() if view.job}
    return Seen(runs.facts(run).state, runs.states(run), Counter(runs.ran), jobs)


def end(runs: Runs, leased: LeasedJob, play: Play) -> None:
    node = leased.extras["node"]
    stopped = runs.engine.jobs.get(leased.id).cancel_requested
    runs.end(leased, "cancelled" if stopped else play.outcomes.get(node, "succeeded"), result=play.results.get(node))


class Held(Runs):
    """Remembers what is leased and has not ended."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.held: list[LeasedJob] = []

    def lease(self, limit: int = 1000) -> list[LeasedJob]:
        leased = super().lease(limit)
        self.held += leased
        return leased

    def end(self, job: LeasedJob, *arguments: Any, **options: Any) -> None:
        self.held.remove(job)
        super().end(job, *arguments, **options)


def perform(engine: Engine, clock: ManualClock, play: Play, dies_before: int) -> tuple[Seen, int]:
    """What is seen in the end, and how many calls the act took."""
    runs = Held(engine)
    run = runs.start(*play.nodes)
    play.before(runs, run)
    with dying(engine.store, dies_before) as calls, suppress(Died):
        play.act(runs, run)
    if play.is_repeated:
        play.act(runs, run)
    return finish(engine, runs, run, play, clock), len(calls)


@pytest.mark.parametrize("name", PLAYS)
def test_who_dies_over_it_leaves_it_done_or_not_done_and_nothing_stuck(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(run_nodes, "EDGES", 5)  # nodes come in several calls
    play = PLAYS[name]
    done, calls = perform(engine, clock, play, 0)
    not_done, _ = perform(engine, clock, play, 1)
    assert calls > 2

    for number in range(2, calls + 1):
        try:
            seen, _ = perform(engine, clock, play, number)
        except BaseException as error:
            error.add_note(f"died before call {number} of {calls}")
            raise
        assert seen in (done, not_done), f"died before call {number} of {calls}"


def test_a_start_is_finished_or_forgotten(engine: Engine, clock: ManualClock) -> None:
    play = Play(GROUPS, lambda runs, run: None, results={"list": [1, 2]})
    for number in count(1):
        runs, run = Held(engine), f"run-{number}"
        with dying(engine.store, number) as calls, suppress(Died):
            runs.start(*play.nodes, id=run)
        facts = engine.workflows.find(run)
        if facts is not None and facts.state != "preparing":
            seen = finish(engine, runs, run, play, clock)
            assert seen.state == "succeeded", f"died before call {number}"
            assert max(seen.ran.values()) == 1
        else:
            clock.advance(70)
            RelayService(engine).tick()
            assert engine.workflows.find(run) is None
        if len(calls) < number - 1:  # it came to its end
            return
