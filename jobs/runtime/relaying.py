"""Carries what has happened to where it matters: ends of jobs to their runs, released nodes into jobs.

Each step changes nothing the second time, and what made it necessary is crossed out only when what followed is done:
whoever dies on the way leaves it to the next. Steps of one round of news, each of which may be the last:

1. the run hears of the news, and hands out the nodes that are released by them;
2. it is fixed under which ids their jobs are made;
3. the jobs are made;
4. the run hears that they are there;
5. the news are crossed out.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from jobs.core.job import Route
from jobs.core.workflow import OVER, PREPARING, Definition, Ended, references
from jobs.core.workflow.definition import RUN, Kind
from jobs.engine import Engine
from jobs.engine.batches import batches
from jobs.engine.outbox import News
from jobs.engine.run_nodes import Birth, Handed, StepReply, in_order
from jobs.engine.run_pauses import is_spread
from jobs.engine.run_results import GROUP_LIMIT
from jobs.engine.workflows import CREATE_MS
from jobs.exceptions import OutcomeUnknown, RunNotFound, SchedulerError, StoreRefused, StoreUnavailable
from jobs.runtime import node_jobs
from jobs.runtime.opening import OPENERS
from jobs.store.codec.ids import derived_id, route_in

log = logging.getLogger("jobs.runtime")

NEWS = 250
"""News that a run hears at once."""

NOT_YET = ("late", "living")
"""What keeps a node from becoming a job for now: whoever looks at its run next tries again."""

ERRORS_OF_THE_STORE = (OutcomeUnknown, StoreRefused, StoreUnavailable)
"""No fault of a node: what was left undone is done when the server is well again."""


@contextmanager
def one_run_only(run_id: str) -> Iterator[None]:
    """What goes wrong inside for no fault of the server stays with this run: it is tried again, others are not kept."""
    try:
        yield
    except ERRORS_OF_THE_STORE:
        raise
    except Exception:
        log.exception("run %s cannot go on, a service will try again", run_id)


class Relay:
    """``tell`` after jobs have ended, ``advance`` after something else has happened to a run.

    ``at_step`` is called before each step with its number; tests die there.
    """

    def __init__(self, engine: Engine, at_step: Callable[[int], object] = lambda step: None) -> None:
        self.engine = engine
        self._at_step = at_step

    def start(self, run_id: str, definition: Definition, facts: dict[str, Any]) -> None:
        """Begins a run, unless there is one with this id; one that was not written down to its end is gone on with."""
        workflows = self.engine.workflows
        if workflows.create(run_id, definition.name, facts) in ("created", PREPARING):
            if definition.timeout is not None:
                self._set_limit(run_id)
            workflows.add(run_id, in_order(definition.nodes))
            workflows.open(run_id)
            self.pursue(run_id)

    def _set_limit(self, run_id: str) -> None:
        """Only once the run is there: a limit that passes before would be taken for that of a run that never came."""
        deadline_ms = self.engine.workflows.facts(run_id).deadline_ms
        if deadline_ms is not None:
            self.engine.run_control.set_deadline(run_id, deadline_ms)

    def pursue(self, run_id: str) -> None:
        """After something has changed in a run: does what follows. RunNotFound."""
        seen = self.engine.workflows.touch(run_id)
        if self.advance(run_id):
            self.engine.workflows.rest(self.engine.workflows.facts(run_id), seen=seen)

    def tell(self, route: Route, job_ids: Iterable[str]) -> int:
        """Tells the runs of these jobs how they stand, as far as that is news; how many were told for good."""
        told = 0
        by_run: defaultdict[str, list[News]] = defaultdict(list)
        for one in self.engine.outbox.read(route, job_ids):
            by_run[one.run].append(one)
        for run_id, news in by_run.items():
            with one_run_only(run_id):
                told += self._tell_run(route, run_id, news)
        return told

    def _tell_run(self, route: Route, run_id: str, news: Sequence[News]) -> int:
        told = 0
        for batch in batches(news, lambda one: one.size, limit=NEWS):
            if self._carry(run_id, batch):
                self._at_step(5)
                self.engine.outbox.told(route, batch)
                told += len(batch)
        return told

    def tell_of(self, job_ids: Iterable[str]) -> None:
        """The same for jobs of whatever partition, most of which may be no nodes at all. A store that is away is no
        error: services of worker hosts will tell."""
        by_route: defaultdict[Route, list[str]] = defaultdict(list)
        for job_id in job_ids:
            if (route := route_in(job_id)) is not None:
                by_route[route].append(job_id)
        try:
            for route in self.engine.outbox.routes_with_news(list(by_route)):
                self.tell(route, by_route[route])
        except ERRORS_OF_THE_STORE as error:
            log.warning("runs could not be told of their nodes, a service will: %s", error)

    def hear(self, run_id: str, news: Sequence[News]) -> None:
        """Has a run hear news that are in no outbox."""
        for batch in batches(news, limit=NEWS):
            self._carry(run_id, batch, is_repeated=True)

    def advance(self, run_id: str) -> bool:
        """Goes on with a run until nothing is left to do; False where somebody else is still at it, or died over it.

        RunNotFound.
        """
        return self._carry(run_id, [], is_repeated=True)

    def _carry(self, run_id: str, news: Sequence[News], *, is_repeated: bool = False) -> bool:
        """Whether what made it necessary may be crossed out."""
        self._at_step(1)
        try:
            reply = self.engine.workflows.step(run_id, news)
        except RunNotFound:
            if not news:
                raise
            return True  # it was forgotten: nobody waits for this
        # News that the run knew were told before, by somebody who may have died over what followed.
        is_repeated = is_repeated or reply.fresh < len(news)
        has_changed, is_done = reply.has_changed, True
        while reply.handed or reply.agenda:
            is_done = self._make_jobs(run_id, reply) and is_done
            reply = self.engine.workflows.step(run_id)
            has_changed = has_changed or reply.has_changed
        if has_changed or (is_repeated and reply.state in OVER):
            facts = self.engine.workflows.facts(run_id)
            if not is_spread(facts):
                self.engine.run_pauses.spread(run_id)
            self.engine.workflows.rest(facts)
        return is_done and not (is_repeated and reply.claimed)

    # --- released nodes into jobs -------------------------------------------------------------------------------------

    def _make_jobs(self, run_id: str, reply: StepReply) -> bool:
        """Whether all that were handed out are settled."""
        if not reply.handed:
            return True
        births, outcomes = self._births(run_id, [one for one in reply.handed if one.node.kind is Kind.JOB])
        outcomes += [self._open(run_id, one) for one in reply.handed if one.node.kind is not Kind.JOB]
        if births:
            self._at_step(2)
            ids = self.engine.workflows.name(run_id, [(birth.rank, birth.id) for birth in births])
            births = [birth._replace(id=job_id) for birth, job_id in zip(births, ids, strict=True)]
            self._at_step(3)
            outcomes += self._made(births, not_after=reply.now + CREATE_MS)
        self._at_step(4)
        self.engine.workflows.settle(run_id, outcomes)
        return len(outcomes) == len(reply.handed)

    def _made(self, births: Sequence[Birth], *, not_after: int) -> list[tuple[int, str, bytes]]:
        """Makes the jobs, or has them live again, as far as there still is time and their life before has ended; a node
        without an id was given up."""
        first = [birth for birth in births if birth.id and not birth.again]
        again = [birth for birth in births if birth.id and birth.again]
        answers = self.engine.workflows.enqueue(first, not_after=not_after)
        answers |= self.engine.run_control.resubmit(again)
        return [(birth.rank, "made", b"") for birth in births if not birth.id or answers[birth.id] not in NOT_YET]

    def _open(self, run_id: str, one: Handed) -> tuple[int, str, bytes]:
        """A node that is no job: its kind says what to do."""
        try:
            OPENERS[one.node.kind](self.engine, run_id, one)
        except ERRORS_OF_THE_STORE:
            raise
        except (SchedulerError, ValueError, LookupError) as error:
            log.warning("run %s: node %s cannot be opened: %s", run_id, one.node.key, error)
            return one.rank, "dead", _described(error)
        return one.rank, "made", b""

    def _births(self, run_id: str, handed: Sequence[Handed]) -> tuple[list[Birth], list[tuple[int, str, bytes]]]:
        """The jobs to be made, and the nodes that can be none."""
        sources = [{reference.source for reference in references(one.node.payload)} for one in handed]
        run_payload = self.engine.workflows.facts(run_id).payload if any(RUN in each for each in sources) else None
        births, refused = [], []
        for together, wanted in _with_room((one, each - {RUN}) for one, each in zip(handed, sources, strict=True)):
            parents = self.engine.workflows.parents(run_id, wanted) if wanted else {}
            for one in together:
                try:
                    births.append(self._birth(run_id, one, run_payload, parents))
                except ERRORS_OF_THE_STORE:
                    raise
                except Exception as error:  # also of a payload's type, which is the user's
                    log.warning("run %s: node %s can be no job: %s", run_id, one.node.key, error)
                    refused.append((one.rank, "dead", _described(error)))
        return births, refused

    def _birth(self, run_id: str, one: Handed, run_payload: Any, parents: dict[str, Ended]) -> Birth:
        spec = node_jobs.spec_of(self.engine, run_id, one.node)
        payload = node_jobs.payload_of(self.engine, one.node, run_payload, parents)
        job_id = one.job or self._new_id(run_id, one, spec.pool)
        return Birth(one.rank, job_id, run_id, one.node.key, spec, payload, one.again)

    def _new_id(self, run_id: str, one: Handed, pool: str) -> str:
        name = f"node\0{run_id}\0{one.node.key}"
        return derived_id(one.released_at, name, self.engine.topology.route_for(pool, name))


def _with_room(nodes: Iterable[tuple[Handed, set[str]]]) -> Iterator[tuple[list[Handed], set[str]]]:
    """Nodes, each with the parents that its payload takes from, in groups whose parents are read at once: so few that
    there is room for the results of all of them, or those of one node. None takes the room of another."""
    together, wanted = list[Handed](), set[str]()
    for node, parents in nodes:
        if together and len(wanted | parents) > GROUP_LIMIT:
            yield together, wanted
            together, wanted = [], set()
        together.append(node)
        wanted |= parents
    if together:
        yield together, wanted


def _described(error: Exception) -> bytes:
    return msgspec.json.encode({"type": type(error).__name__, "message": str(error), "traceback": ""})
