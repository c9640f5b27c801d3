"""Random graphs on a real server against the oracle: outcomes, orders of ends, and workers and relays that die."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.core.job import LeasedJob
from jobs.core.states import JobState
from jobs.core.workflow import Definition, Node
from jobs.engine import Engine
from jobs.engine.workflows import new_run_id
from jobs.runtime.relaying import Relay
from jobs.services.relay import RelayService
from tests.support.clock import ManualClock
from tests.support.graphs import FAILURES, SUCCEEDED, holds, oracle, random_nodes, verdict, wanted_of
from tests.support.runs import Runs

SECONDS = 7.0
"""Longer than a node is handed out for."""


class Died(BaseException):
    """The process that relayed is gone."""


class Storm(Runs):
    """Runs whose workers and relays die now and then; a service of another host finishes what relays have left."""

    def __init__(self, engine: Engine, clock: ManualClock, random: Random, deadliness: float) -> None:
        super().__init__(engine)
        self.relay = Relay(engine, self._perhaps_die)
        self.service = RelayService(engine)
        self.clock = clock
        self.deaths: Counter[int] = Counter()  # of relays, by step
        self.crashes: Counter[str] = Counter()  # of workers, by node
        self._random = random
        self._deadliness = deadliness

    def begin(self, nodes: list[Node]) -> str:
        run_id = new_run_id()
        with suppress(Died):
            self.relay.start(run_id, Definition(name="storm", nodes=tuple(nodes)), {"payload": {}})
        return run_id

    def tell(self, jobs: Iterable[LeasedJob]) -> None:
        with suppress(Died):
            super().tell(jobs)

    def crash(self, job: LeasedJob) -> bool:
        """Whether the worker dies over it. It does not so often that the job would be dead for it."""
        node = job.extras["node"]
        if self._random.random() >= self._deadliness or self.crashes[node] == 2:
            return False
        self.crashes[node] += 1
        mark = (job.id, job.token, job.leased_at)
        assert self.engine.leases.crash(job.route, [mark], reason="SIGKILL") == ["ready"]
        return True

    def tidy(self) -> None:
        """As the services of a host do, once the dead relay's claims are over."""
        self.clock.advance(SECONDS)
        self.service.tick()

    def _perhaps_die(self, step: int) -> None:
        if self._random.random() < self._deadliness:
            self.deaths[step] += 1
            raise Died


def check_is_not_early(storm: Storm, run: str, nodes: dict[str, Node], job: LeasedJob) -> None:
    """When its job is there, as many parents as it wants have ended as it wants."""
    node = nodes[job.extras["node"]]
    ends = storm.engine.workflows.parents(run, [parent for parent, _ in node.edges()])
    satisfied = sum(holds(edge, JobState(ends[parent].state)) for parent, edge in node.edges() if parent in ends)
    assert satisfied >= wanted_of(node), f"{node.key} was released early"


@pytest.mark.parametrize("deadliness", [0.0, 0.25])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 200), health=st.sampled_from([0.5, 0.9, 1.0]))
def test_every_node_ends_as_the_oracle_says(
    engine: Engine, clock: ManualClock, deadliness: float, seed: int, count: int, health: float
) -> None:
    random = Random(seed)
    nodes = random_nodes(random, count)
    by_key = {node.key: node for node in nodes}
    outcomes = {node.key: SUCCEEDED if random.random() < health else random.choice(FAILURES) for node in nodes}
    storm = Storm(engine, clock, random, deadliness)
    few = random.choice([1, 7, 500])  # of looks in one step: half-done agendas are what others find
    storm.engine.workflows.step = partial(type(engine.workflows).step, engine.workflows, limit=few, take=few)  # type: ignore[method-assign]
    run = storm.begin(nodes)

    held: list[LeasedJob] = []
    idle = 0
    while not storm.facts(run).is_over:
        # What an example that failed has left behind is no business of this one.
        leased = storm.lease(limit=random.choice([1, 10, 100]))
        held += (job for job in leased if job.extras["workflow_run"] == run)
        if not held:
            idle += 1
            assert idle < 20 + 10 * len(nodes), f"stuck: {storm.states(run)}"
            storm.tidy()
            continue
        random.shuffle(held)
        some = random.choice([1, 5, 50])
        for job in held[:some]:
            check_is_not_early(storm, run, by_key, job)
        ending, held = [job for job in held[:some] if not storm.crash(job)], held[some:]
        for job in ending:
            storm.end(job, outcomes[job.extras["node"]], tell=False)
        storm.tell(random.sample(ending, random.randint(0, len(ending))) if deadliness else ending)

    assert storm.states(run) == oracle(nodes, outcomes)
    assert storm.facts(run).state == verdict(nodes, oracle(nodes, outcomes))
    assert all(times == 1 + storm.crashes[node] for node, times in Counter(storm.ran).items()), "a node ran twice"
    storm.tidy()
    assert engine.outbox.routes_with_news(engine.topology.partitions()) == []
