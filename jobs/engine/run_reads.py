"""Looking at runs of workflows: their facts and their nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.workflow import NodeView, RunFacts
from jobs.engine.batches import batches
from jobs.exceptions import RunNotFound
from jobs.store.codec.runs import decode_facts, decode_view
from jobs.store.connection import Store
from jobs.store.keys import RunKeys

PAGE = 1000
"""Nodes that are read at once."""


class RunReads:
    """See the module. All raise StoreUnavailable where the server is away."""

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock

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

    def known(self, run_id: str, keys: Iterable[str]) -> set[str]:
        """Those that are keys of nodes."""
        found: set[str] = set()
        for batch in batches(keys, limit=PAGE):
            ranks = self._ranks(run_id, batch)
            found.update(key for key, rank in zip(batch, ranks, strict=True) if rank is not None)
        return found

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

    def _keys(self, run_id: str) -> RunKeys:
        return RunKeys(self._store.namespace, run_id)
