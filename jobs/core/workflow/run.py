"""What follows when a node of a run ends: which nodes are released, which can no longer run, and how the run stands.

Everything is a set of keys and each step says the same when it is told twice, so that whoever finishes what another
left half done changes nothing: a join holds the set of parents that ended as it wants, never a number to count down.
An event costs its own edges and those of the nodes that it moves; a join of ten thousand parents is never gone through.

Nodes are looked at in an order in which parents come first (``Graph.rank``). One event may both end a node's waiting
for one parent and take back the skipping of another: in any other order it could be released on a state that the same
event is about to change.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow.definition import Edge, Node
from jobs.core.workflow.graph import Graph


class RunState(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # a dead node is covered by no child
    CANCELLED = "cancelled"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What an event leads to; keys in an order in which parents come first."""

    released: tuple[str, ...] = ()  # to be enqueued, each once in the life of the run
    skipped: tuple[str, ...] = ()  # their condition can no longer hold
    cancelled: tuple[str, ...] = ()  # they waited when the run was cancelled
    reopened: tuple[str, ...] = ()  # they were skipped, and wait again
    state: RunState = RunState.RUNNING


class Run:
    """One execution. ``ended`` holds every node that is over, ``released`` every node that has become a job."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.graph = Graph(nodes)
        self.released: set[str] = set()
        self.ended: dict[str, JobState] = {}
        self.is_cancelled = False
        self._held: defaultdict[str, set[str]] = defaultdict(set)  # node → parents that ended as it wants
        self._broken: defaultdict[str, set[str]] = defaultdict(set)  # node → parents that ended otherwise

    @property
    def state(self) -> RunState:
        if len(self.ended) < len(self.graph):
            return RunState.RUNNING
        if self.is_cancelled:
            return RunState.CANCELLED
        uncovered = {state for key, state in self.ended.items() if state in _FAILURES and not self._is_covered(key)}
        if JobState.DEAD in uncovered:
            return RunState.FAILED
        return RunState.CANCELLED if uncovered else RunState.SUCCEEDED

    def start(self) -> Decision:
        """Releases the nodes that wait for nobody."""
        return self._settle(self.graph.nodes)

    def note(self, key: str, state: JobState) -> Decision:
        """The job of a node is in this state now. A terminal one is its end; any other one says that it lives again.

        What is known already leads to nothing. A node whose job was never released has no news: ValueError.
        """
        if key not in self.released:
            raise ValueError(f"node {key!r} was never released")
        now = state if state in TERMINAL else None
        if self.ended.get(key) == now:
            return Decision(state=self.state)
        self._end(key, now)
        return self._settle(self.graph.children[key])

    def add(self, nodes: Iterable[Node]) -> Decision:
        """Nodes that come while the run goes on, parents before children. A parent that ended before counts."""
        added = [node for node in nodes if node.key not in self.graph.nodes]
        for node in added:
            self.graph.add(node)
            for parent in self.graph.parents[node.key]:
                self._tell(parent, node.key, self.ended.get(parent))
        return self._settle(node.key for node in added)

    def cancel(self) -> Decision:
        """What waits never starts, but for nodes that are marked ``always``. Ending what runs is the caller's."""
        self.is_cancelled = True
        return self._settle(self.graph.nodes)

    def _settle(self, keys: Iterable[str]) -> Decision:
        """Looks at these nodes, then at the children of those that changed, and so on."""
        moved: dict[str, list[str]] = {"released": [], "skipped": [], "cancelled": [], "reopened": []}
        waiting = [(self.graph.rank[key], key) for key in keys]
        heapq.heapify(waiting)
        looked_at = -1
        while waiting:
            rank, key = heapq.heappop(waiting)
            if rank == looked_at or key in self.released:
                continue
            looked_at, was_over = rank, key in self.ended
            what = self._move(key)
            if what is None:
                continue
            moved[what].append(key)
            if was_over or key in self.ended:  # children are concerned by ends, and by ends that are taken back
                for child in self.graph.children[key]:
                    heapq.heappush(waiting, (self.graph.rank[child], child))
        return Decision(state=self.state, **{what: tuple(keys) for what, keys in moved.items()})

    def _move(self, key: str) -> str | None:
        """Brings a node that is no job yet to where it belongs now; what that was, None where it was there before."""
        before, now = self.ended.get(key), self._fate(key)
        if now is JobState.READY:
            self._end(key, None)
            self.released.add(key)
            return "released"
        if now == before:
            return None
        self._end(key, now)
        return "reopened" if now is None else str(now)

    def _fate(self, key: str) -> JobState | None:
        """Of a node that is no job yet: READY = it may run, a terminal state = it never will, None = it waits."""
        if self.is_cancelled and not self.graph.nodes[key].always:
            return self.ended.get(key) or JobState.CANCELLED
        wanted = self.graph.wanted(key)
        if len(self._held[key]) >= wanted:
            return JobState.READY
        if len(self.graph.parents[key]) - len(self._broken[key]) < wanted:
            return JobState.SKIPPED
        return None

    def _end(self, key: str, state: JobState | None) -> None:
        """Writes down how a node ended (None = it did not), and what that is to those who wait for it."""
        if state is None:
            self.ended.pop(key, None)
        else:
            self.ended[key] = state
        for child in self.graph.children[key]:
            self._tell(key, child, state)

    def _tell(self, parent: str, child: str, state: JobState | None) -> None:
        self._held[child].discard(parent)
        self._broken[child].discard(parent)
        if state is not None:
            holds = state in _HOLD[self.graph.parents[child][parent]]
            (self._held if holds else self._broken)[child].add(parent)

    def _is_covered(self, key: str) -> bool:
        """Whether somebody was asked to deal with the end of this node."""
        return any(
            child in self.released and self.graph.parents[child][key] is not Edge.SUCCESS
            for child in self.graph.children[key]
        )


_FAILURES = frozenset({JobState.DEAD, JobState.CANCELLED})
_HOLD = {Edge.SUCCESS: frozenset({JobState.SUCCEEDED}), Edge.FAILURE: _FAILURES, Edge.COMPLETE: TERMINAL}
"""What is waited for → ends of the parent that it is."""
