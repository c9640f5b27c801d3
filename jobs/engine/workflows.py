"""The verbs on runs of workflows. A run lives in a slot of its own; the lists of all runs in another.

What spans slots goes in steps that may all be repeated. Every event of a run writes its facts and puts on the run's
agenda what must be looked at; ``step`` goes on with the agenda and hands out nodes that are to become jobs, for a
while. ``jobs.runtime.relaying`` is who goes these ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.workflow import Node, RunFacts
from jobs.engine import news
from jobs.engine.batches import batches
from jobs.engine.outbox import News
from jobs.engine.run_nodes import Birth, StepReply, calls, decode_handed
from jobs.engine.run_results import RunResults
from jobs.exceptions import OutcomeUnknown, StoreUnavailable
from jobs.store.codec.bodies import encode_header
from jobs.store.codec.ids import new_head, route_in
from jobs.store.codec.runs import encode_facts
from jobs.store.codec.values import whole_number
from jobs.store.connection import Store
from jobs.store.keys import WorkflowKeys, partition_keys

CLAIM_MS = 6_000
"""How long nodes and runs are handed out: after as long somebody else does what was left undone."""
CREATE_MS = 4_000
"""How long of it a job may be created. The rest is for servers of a cluster whose clocks differ."""
LOOK_MS = 60_000
"""A run that goes on is looked at as often, whatever happens."""

NEWS = "runs"
"""The topic under which hosts hear at once that a run begins where there was none."""

STEP = 250
"""Looks at nodes in one call."""
TAKE = 250
"""Nodes that are handed out in one call."""
GROWTH = 10
"""So many times the nodes of a definition a run may have, once lists and handlers have added theirs."""


COUNTED_RUNS = 500
"""So many runs are looked at for how their nodes stand."""


class NodeCounts(NamedTuple):
    """Nodes that wait for others, in how many ``runs`` that go on; nodes that were skipped in these, and in those that
    ended lately. Not ``is_whole``: there are more runs than were looked at."""

    waiting: int
    runs: int
    skipped: int
    is_whole: bool


class Workflows(RunResults):
    """See the module. Verbs on one run raise RunNotFound; all raise StoreUnavailable or OutcomeUnknown where the
    server is away."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, told: news.News) -> None:
        super().__init__(store, settings, clock)
        self._told = told
        self._lists = WorkflowKeys(store.namespace)

    # --- beginning and growing ----------------------------------------------------------------------------------------

    def create(self, run_id: str, name: str, facts: dict[str, Any]) -> str:
        """Begins a run without nodes, which does nothing until ``open``; "created", or how the run stands that has the
        id already."""
        is_first = self._store.run(
            "workflow_enlist",
            WorkflowKeys(self._store.namespace, name),
            given_now=self._now(),
            run=run_id,
            wait=CLAIM_MS,
        )
        if is_first:
            with suppress(StoreUnavailable, OutcomeUnknown):  # hosts look by themselves too, now and then
                self._told.tell(NEWS)
        items = encode_facts({"name": name, **facts})
        reply: bytes = self._run("workflow_create", run_id, items, given_now=self._now())
        return reply.decode()

    def add(
        self,
        run_id: str,
        nodes: Sequence[Node],
        *,
        scope: str = "",
        depth: int = 0,
        is_always: bool = False,
        is_growth: bool = False,
    ) -> int:
        """Adds nodes that are in an order in which parents come first, or are there; how many are new.

        ``scope``: the group that they become members of, ``depth`` groups deep; ``is_always``: they run in a cancelled
        run too. ``is_growth``: the run goes on, and may become ``GROWTH`` times as large as a definition.

        WorkflowInvalid for an unknown parent, too many nodes, and in a run that is being cancelled: nothing is added.
        """
        added = 0
        most_nodes = self._settings.workflow_nodes * (GROWTH if is_growth else 1)
        for coming, items in calls(nodes, scope, depth, is_always):
            added += self._run("workflow_add", run_id, items, most_nodes=most_nodes, coming=coming)
        return added

    def open(self, run_id: str) -> str:
        """All nodes are there: the run may begin. How it stands."""
        reply: bytes = self._run("workflow_open", run_id)
        return reply.decode()

    # --- going on -----------------------------------------------------------------------------------------------------

    def step(self, run_id: str, news: Sequence[News] = (), *, limit: int = STEP, take: int = TAKE) -> StepReply:
        """Writes down at most 250 news, goes on with the agenda, and hands out released nodes."""
        items = [value for one in news for value in one.items]
        now, state, agenda, claimed, fresh, changed, *handed = self._run(
            "workflow_step", run_id, items, given_now=self._now(), limit=limit, take=take, claim_ms=CLAIM_MS
        )
        given = iter(handed)
        return StepReply(
            now=now,
            state=state.decode(),
            agenda=agenda,
            claimed=claimed,
            fresh=fresh,
            has_changed=changed == b"1",
            handed=[decode_handed(*facts) for facts in zip(given, given, given, strict=True)],
        )

    def name(self, run_id: str, ids: Sequence[tuple[int, str]]) -> list[str]:
        """Fixes the ids under which jobs of nodes (by rank) are made; for each the one that counts."""
        found: list[bytes] = self._run("workflow_name", run_id, [value for pair in ids for value in pair])
        return [job_id.decode() for job_id in found]

    def enqueue(self, births: Iterable[Birth], *, not_after: int) -> dict[str, str]:
        """Makes the jobs; by id: "created", "there" (a job has the id), or "late" (nothing was made)."""
        answers: dict[str, str] = {}
        groups: dict[tuple[Any, ...], list[Birth]] = {}
        for birth in births:
            key = (route_in(birth.id), birth.spec.type, birth.spec.priority, birth.spec.delay_ms)
            groups.setdefault(key, []).append(birth)
        for (route, type_name, priority, delay), group in groups.items():
            for batch in batches(group, lambda birth: len(birth.payload)):
                items: list[Any] = []
                for birth in batch:
                    body = encode_header(birth.spec) + birth.payload
                    items += (birth.id, f"{birth.run}\n{birth.node}", body)
                _, *made = self._store.run(
                    "node_enqueue",
                    partition_keys(self._store.namespace, route),
                    items,
                    given_now=self._now(),
                    type=type_name,
                    priority=priority,
                    delay=delay,
                    not_after=not_after,
                )
                answers.update(zip((birth.id for birth in batch), (answer.decode() for answer in made), strict=True))
        return answers

    def settle(self, run_id: str, outcomes: Sequence[tuple[int, str, bytes]]) -> None:
        """What became of nodes that were handed out: (rank, "made" or "dead", error JSON or nothing)."""
        for batch in batches(outcomes, limit=250):
            items = [value for outcome in batch for value in outcome]
            self._run("workflow_settle", run_id, items, given_now=self._now())

    def unmade(self, run_id: str, ranks: Iterable[int]) -> set[int]:
        """Those of these nodes whose jobs are yet to be made, or to live again."""
        key, found = self._keys(run_id).outbox, set[int]()
        for batch in batches(ranks):
            scores: Any = self._store.read(lambda client: client.zmscore(key, batch))  # noqa: B023
            found.update(rank for rank, score in zip(batch, scores, strict=True) if score is not None)
        return found

    # --- the lists of runs --------------------------------------------------------------------------------------------

    def touch(self, run_id: str) -> int:
        """Before something is changed: whoever dies over it leaves the run to others. When they look at it, ms."""
        return self._look(run_id, wait=CLAIM_MS) or 0

    def rest(self, facts: RunFacts, *, seen: int | None = None) -> None:
        """After that: the run is looked at when it is time again, or never where it is over and nothing is left to do.

        ``seen``: what ``touch`` or ``due`` answered; where somebody else touched it since, that stays.
        """
        wait = CLAIM_MS if facts.to_stop else None if facts.is_over else LOOK_MS
        self._look(
            facts.id,
            wait=wait,
            finished_at=facts.finished_at_ms if facts.is_over else None,
            seen=seen,
        )

    def due(self, limit: int = 50) -> list[tuple[str, int]]:
        """Runs that are to be looked at, and until when they are the caller's (ms)."""
        _, *given = self._store.run("workflow_due", self._lists, given_now=self._now(), claim_ms=CLAIM_MS, limit=limit)
        pairs = iter(given)
        return [(run_id.decode(), until) for run_id, until in zip(pairs, pairs, strict=True)]

    def has_runs(self) -> bool:
        """Whether there is any run."""
        return bool(self._store.read(lambda client: client.exists(self._lists.runs)))

    def ended(self, since_ms: int, limit: int = 100) -> list[RunFacts]:
        """Runs that ended since then, oldest end first. One that went on and ended again comes again."""
        found: Any = self._store.read(
            lambda client: client.zrange(self._lists.ended, since_ms, "+inf", byscore=True, offset=0, num=limit)
        )
        return [facts for facts in self.facts_of([run_id.decode() for run_id in found]) if facts is not None]

    def node_counts(self, ended_since_ms: int, limit: int = COUNTED_RUNS) -> NodeCounts:
        """How nodes stand that have no job; two round trips."""

        def newest(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            pipeline.zrange(self._lists.active, 0, limit)
            pipeline.zrange(self._lists.ended, "+inf", ended_since_ms, byscore=True, desc=True, offset=0, num=limit + 1)
            return list(pipeline.execute())

        active, ended = self._store.read(newest)
        run_ids = [run_id.decode() for run_id in dict.fromkeys((*active[:limit], *ended[:limit]))]

        def counts(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for run_id in run_ids:
                pipeline.hmget(self._keys(run_id).counts, "blocked", "skipped")
            return list(pipeline.execute())

        stored = self._store.read(counts) if run_ids else []
        found = [(whole_number(waits) or 0, whole_number(skipped) or 0) for waits, skipped in stored]
        waiting = [waits for waits, _ in found[: len(active[:limit])]]
        return NodeCounts(
            waiting=sum(waiting),
            runs=sum(waits > 0 for waits in waiting),
            skipped=sum(skipped for _, skipped in found),
            is_whole=max(len(active), len(ended)) <= limit,
        )

    def newest(
        self, name: str | None = None, *, before: int | None = None, last: str | None = None, limit: int = 50
    ) -> list[tuple[str, int]]:
        """Ids of the newest runs (of one workflow), and when they were created; ``before``: then or earlier.

        ``last``: of those that were created in that very millisecond, only the ones that come after this one."""
        key = self._lists.runs if name is None else WorkflowKeys(self._store.namespace, name).named
        seen = 0
        if before is not None and last is not None:
            seen = int(self._store.read(lambda client: client.zcount(key, before, before)))
        found: Any = self._store.read(
            lambda client: client.zrange(
                key,
                "+inf" if before is None else before,
                "-inf",
                byscore=True,
                desc=True,
                offset=0,
                num=limit + seen,
                withscores=True,
            )
        )
        runs = [(run_id.decode(), int(score)) for run_id, score in found]
        return [(run_id, at) for run_id, at in runs if last is None or at != before or run_id < last][:limit]

    def remove(self, run_id: str) -> None:
        """Forgets a run. Its jobs stay."""
        facts = self.find(run_id)
        if facts is not None:
            for batch in batches([*self._groups(run_id), *self._keys(run_id).all(range(facts.total))]):
                self._store.call(lambda client: client.unlink(*batch))  # noqa: B023
            named = WorkflowKeys(self._store.namespace, facts.name).named
            self._store.call(lambda client: client.zrem(named, run_id))
        for line in (self._lists.active, self._lists.ended, self._lists.runs):
            self._store.call(lambda client: client.zrem(line, run_id))  # noqa: B023

    def past_retention(self, limit: int = 100) -> list[str]:
        """Runs that ended so long ago that they are to be forgotten."""
        oldest = self.server_now_ms() - int(self._settings.retention_seconds * 1000)
        found: Any = self._store.read(
            lambda client: client.zrange(self._lists.ended, "-inf", oldest, byscore=True, offset=0, num=limit)
        )
        return [run_id.decode() for run_id in found]

    def _groups(self, run_id: str) -> list[str]:
        keys = self._keys(run_id)
        fields: Any = self._store.read(lambda client: client.hkeys(keys.run))
        return [keys.failures_of + name.decode()[5:] for name in fields if name.startswith(b"left:")]

    def _look(
        self, run_id: str, *, wait: int | None, finished_at: int | None = None, seen: int | None = None
    ) -> int | None:
        reply = self._store.run(
            "workflow_look",
            self._lists,
            given_now=self._now(),
            run=run_id,
            seen="" if seen is None else seen,
            wait="" if wait is None else wait,
            finished_at="" if finished_at is None else finished_at,
        )
        return reply if isinstance(reply, int) else None

    def _run(self, name: str, run_id: str, items: Sequence[Any] = (), **arguments: Any) -> Any:
        return self._store.run(name, self._keys(run_id), items, **arguments)

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def new_run_id() -> str:
    """Sorts by time."""
    return new_head()
