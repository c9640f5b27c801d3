"""The verbs on runs of workflows. A run lives in a slot of its own; the lists of all runs in another.

What spans slots goes in steps that may all be repeated. Every event of a run writes its facts and puts on the run's
agenda what must be looked at; ``step`` goes on with the agenda and hands out nodes that are to become jobs, for a
while. ``jobs.runtime.relaying`` is who goes these ways.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.workflow import Definition, Ended, Kind, Node, NodeView, RunFacts
from jobs.engine.batches import batches
from jobs.engine.outbox import News
from jobs.engine.run_nodes import Birth, StepReply, calls, decode_handed
from jobs.exceptions import RunNotFound
from jobs.store.codec.bodies import encode_header
from jobs.store.codec.ids import new_head, route_in
from jobs.store.codec.runs import decode_facts, decode_json, decode_state, decode_view, encode_facts
from jobs.store.connection import Store
from jobs.store.keys import RunKeys, WorkflowKeys, partition_keys

CLAIM_MS = 6_000
"""How long nodes and runs are handed out: after as long somebody else does what was left undone."""
CREATE_MS = 4_000
"""How long of it a job may be created. The rest is for servers of a cluster whose clocks differ."""
LOOK_MS = 60_000
"""A run that goes on is looked at as often, whatever happens."""

STEP = 500
"""Looks at nodes in one call."""
TAKE = 500
"""Nodes that are handed out in one call."""
PAGE = 1000
"""Nodes that are read at once."""
GROWTH = 10
"""So many times the nodes of a definition a run may have, once lists and handlers have added theirs."""


class Workflows:
    """See the module. Verbs on one run raise RunNotFound; all raise StoreUnavailable or OutcomeUnknown where the
    server is away."""

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._lists = WorkflowKeys(store.namespace)

    # --- beginning and growing ----------------------------------------------------------------------------------------

    def create(self, run_id: str, name: str, facts: dict[str, Any]) -> str:
        """Begins a run without nodes, which does nothing until ``open``; "created", or how the run stands that has the
        id already."""
        self._store.run(
            "workflow_enlist",
            WorkflowKeys(self._store.namespace, name),
            given_now=self._now(),
            run=run_id,
            wait=CLAIM_MS,
        )
        items = encode_facts({"name": name, **facts})
        reply: bytes = self._run("workflow_create", run_id, items, given_now=self._now())
        return reply.decode()

    def add(
        self,
        run_id: str,
        nodes: Iterable[Node],
        *,
        scope: str = "",
        depth: int = 0,
        is_always: bool = False,
        is_growth: bool = False,
    ) -> int:
        """Adds nodes that are in an order in which parents come first, or are there; how many are new.

        ``scope``: the group that they become members of, ``depth`` groups deep; ``is_always``: they run in a cancelled
        run too. ``is_growth``: the run goes on, and may become ``GROWTH`` times as large as a definition.

        WorkflowInvalid for an unknown parent, too many nodes, and in a run that is being cancelled.
        """
        added = 0
        most_nodes = self._settings.workflow_nodes * (GROWTH if is_growth else 1)
        for items in calls(nodes, scope, depth, is_always):
            added += self._run("workflow_add", run_id, items, most_nodes=most_nodes)
        return added

    def known(self, run_id: str, keys: Iterable[str]) -> set[str]:
        """Those that are keys of nodes."""
        found: set[str] = set()
        for batch in batches(keys, limit=PAGE):
            ranks = self._ranks(run_id, batch)
            found.update(key for key, rank in zip(batch, ranks, strict=True) if rank is not None)
        return found

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

    # --- the lists of runs --------------------------------------------------------------------------------------------

    def touch(self, run_id: str) -> int:
        """Before something is changed: whoever dies over it leaves the run to others. When they look at it, ms."""
        return self._look(run_id, wait=CLAIM_MS) or 0

    def rest(self, facts: RunFacts, *, seen: int | None = None) -> None:
        """After that: the run is looked at when it is time again, or never where it is over.

        ``seen``: what ``touch`` or ``due`` answered; where somebody else touched it since, that stays.
        """
        self._look(
            facts.id,
            wait=None if facts.is_over else LOOK_MS,
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

    # --- looking ------------------------------------------------------------------------------------------------------

    def facts(self, run_id: str) -> RunFacts:
        """The run, without its nodes."""
        facts = self.find(run_id)
        if facts is None:
            raise RunNotFound(f"There is no run {run_id!r}.", fix="Ended runs are forgotten after their retention.")
        return facts

    def find(self, run_id: str) -> RunFacts | None:
        """The same; None where there is none."""
        return self.facts_of([run_id])[0]

    def facts_of(self, run_ids: Sequence[str]) -> list[RunFacts | None]:
        """The runs in the order of the ids; one round trip for all of them."""

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for run_id in run_ids:
                pipeline.hgetall(self._keys(run_id).run)
                pipeline.hgetall(self._keys(run_id).counts)
            return list(pipeline.execute())

        raw = iter(self._store.read(send) if run_ids else [])
        return [
            decode_facts(run_id, run, counts) if b"state" in run else None
            for run_id, run, counts in zip(run_ids, raw, raw, strict=True)
        ]

    def nodes(self, run_id: str, since: int = 0, limit: int = PAGE) -> list[NodeView]:
        """The nodes from this rank on."""
        return [view for view in self._views(run_id, range(since, since + limit)) if view is not None]

    def nodes_at(self, run_id: str, ranks: Sequence[int]) -> list[NodeView]:
        """The nodes of these ranks."""
        return [view for batch in batches(ranks) for view in self._views(run_id, batch) if view is not None]

    def all_nodes(self, run_id: str) -> Iterator[NodeView]:
        """All of them, by rank."""
        since = 0
        while page := self.nodes(run_id, since):
            yield from page
            since += PAGE

    def node(self, run_id: str, key: str) -> NodeView | None:
        """One node by its key."""
        ranks = self._ranks(run_id, [key])
        return None if ranks[0] is None else self._views(run_id, [ranks[0]])[0]

    def parents(self, run_id: str, keys: Iterable[str]) -> dict[str, Ended]:
        """How these nodes have ended, by key; those that have not are left out."""
        found: dict[str, Ended] = {}
        for batch in batches(keys, limit=PAGE):
            ranks = self._ranks(run_id, batch)
            known = [(key, rank) for key, rank in zip(batch, ranks, strict=True) if rank is not None]
            found.update(self._ended(run_id, known))
        return found

    def results(self, run_id: str) -> dict[str, Any]:
        """Results of the nodes that nobody waits for, by key: the result of the run."""
        views = [view for view in self.all_nodes(run_id) if not view.scope]
        awaited = {parent for view in views for parent, _ in view.node.edges()}
        last = [view.key for view in views if view.key not in awaited and view.state == "succeeded"]
        return {key: ended.result for key, ended in self.parents(run_id, last).items()}

    def first_failures(self, run_ids: Sequence[str]) -> dict[str, NodeView]:
        """Run → the first of its own nodes that died or was cancelled; two round trips for all runs."""

        def first(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for run_id in run_ids:
                pipeline.zrange(self._keys(run_id).failures_of, 0, 0)
            return list(pipeline.execute())

        ranks = self._store.read(first) if run_ids else []
        failed = [
            (self._keys(run_id), run_id, int(found[0])) for run_id, found in zip(run_ids, ranks, strict=True) if found
        ]

        def read(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for keys, _, rank in failed:
                for key in (keys.states, keys.nodes, keys.errors):
                    pipeline.hget(key, rank)
            return list(pipeline.execute())

        raw = iter(self._store.read(read) if failed else [])
        return {
            run_id: decode_view(rank, state, node, error)
            for (_, run_id, rank), state, node, error in zip(failed, raw, raw, raw, strict=True)
            if state and node
        }

    def server_now_ms(self) -> int:
        """The time of the server."""
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now

    def _ended(self, run_id: str, known: Sequence[tuple[str, int]]) -> dict[str, Ended]:
        if not known:
            return {}
        keys, ranks = self._keys(run_id), [rank for _, rank in known]
        states, results, errors = self._columns((keys.states, keys.results, keys.errors), ranks)
        found = {}
        for (key, _), raw, result, error in zip(known, states, results, errors, strict=True):
            state = decode_state(raw)
            if state.ended_at:
                found[key] = Ended(state.word, decode_json(result), decode_json(error))
                if not state.job and state.word != "skipped" and not result and not error:
                    found[key] = self._group_ended(run_id, key) or found[key]
        return found

    def _group_ended(self, run_id: str, key: str) -> Ended | None:
        """How a group has ended, made of how its members have; None where it is none."""
        view = self.node(run_id, key)
        if view is None or not view.node.kind.is_group:
            return None
        if view.state != "succeeded":
            failures = self._keys(run_id).failures_of + key
            count = self._store.read(lambda client: client.zcard(failures))
            error = {"type": "GroupFailed", "message": f"{count} of the nodes in {key!r} failed", "traceback": ""}
            return Ended(view.state, None, error)
        if view.node.kind is Kind.EACH:
            return Ended(view.state, self._results_of_each(run_id, key))
        inside = view.node.workflow.nodes if isinstance(view.node.workflow, Definition) else ()
        awaited = {parent for node in inside for parent, _ in node.edges()}
        ended = self.parents(run_id, [f"{key}:{node.key}" for node in inside if node.key not in awaited])
        results = {
            name.removeprefix(f"{key}:"): each.result for name, each in ended.items() if each.state == "succeeded"
        }
        return Ended(view.state, results)

    def _results_of_each(self, run_id: str, group: str) -> list[Any]:
        """Results of the members in the order of the list; None for one that did not succeed."""
        found: list[Any] = []
        while True:
            keys = [f"{group}:{index}" for index in range(len(found), len(found) + PAGE)]
            known = self.known(run_id, keys)
            ended = self.parents(run_id, known)
            page = [ended[key].result if key in ended else None for key in keys if key in known]
            found += page
            if len(page) < PAGE:
                return found

    def _views(self, run_id: str, ranks: Sequence[int]) -> list[NodeView | None]:
        keys = self._keys(run_id)
        states, nodes, errors = self._columns((keys.states, keys.nodes, keys.errors), ranks)
        return [
            decode_view(rank, state, node, error) if state and node else None
            for rank, state, node, error in zip(ranks, states, nodes, errors, strict=True)
        ]

    def _columns(self, hashes: Sequence[str], ranks: Sequence[int]) -> list[list[Any]]:
        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for key in hashes:
                pipeline.hmget(key, ranks)
            return list(pipeline.execute())

        return self._store.read(send)

    def _ranks(self, run_id: str, names: Sequence[str]) -> list[int | None]:
        key = self._keys(run_id).ranks
        found: Any = self._store.read(lambda client: client.hmget(key, names))
        return [None if rank is None else int(rank) for rank in found]

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

    def _keys(self, run_id: str) -> RunKeys:
        return RunKeys(self._store.namespace, run_id)

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def new_run_id() -> str:
    """Sorts by time."""
    return new_head()
