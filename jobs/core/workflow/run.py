"""What follows when a node of a run ends: which nodes are released, which can no longer run, and how the run stands.

Everything is a set of keys and each step says the same when it is told twice, so that whoever finishes what another
left half done changes nothing: a join holds the set of parents that ended as it wants, never a number to count down.
An event costs its own edges and those of the nodes that it moves; a join of ten thousand parents is never gone through.

Nodes are looked at in an order in which parents come first (``Graph.rank``). One event may both end a node's waiting
for one parent and take back the skipping of another: in any other order it could be released on a state that the same
event is about to change.

A group is a node that opens into others, its members, which are a scope of their own: edges do not leave it, and the
group ends when all of its members have, as a run does. So of nodes that are to be looked at, the deepest come first.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow.definition import Edge, Node
from jobs.core.workflow.graph import Graph, in_order

ROOT = ""
"""The scope of nodes that are in no group."""


class RunState(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # a dead node is covered by no child
    CANCELLED = "cancelled"


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What an event leads to; keys in an order in which parents come first."""

    released: tuple[str, ...] = ()  # to be enqueued or opened, each once unless the run is retried
    skipped: tuple[str, ...] = ()  # their condition can no longer hold
    cancelled: tuple[str, ...] = ()  # they waited when the run was cancelled
    reopened: tuple[str, ...] = ()  # they had ended, and wait or go on again
    closed: tuple[str, ...] = ()  # groups whose members have all ended
    state: RunState = RunState.RUNNING


class Redo(msgspec.Struct, frozen=True, kw_only=True):
    """What a retry does to nodes, before it is looked at what follows."""

    again: tuple[str, ...] = ()  # run again at once
    undone: tuple[str, ...] = ()  # are as if they had never run
    dropped: tuple[str, ...] = ()  # members of groups that will open anew
    live: tuple[str, ...] = ()  # groups around what runs again


class Stood(NamedTuple):
    """How a node stands in a run that goes on. ``end``: None, it has not ended."""

    node: Node
    scope: str
    is_released: bool
    end: JobState | None


class Run:
    """One execution. ``ended`` holds every node that is over, ``released`` every node that has become a job."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.graph = Graph(nodes)
        self.released: set[str] = set()
        self.ended: dict[str, JobState] = {}
        self.is_cancelled = False
        self.opened: set[str] = set()
        self.scope_of: dict[str, str] = dict.fromkeys(self.graph.nodes, ROOT)
        self.members: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self.members[ROOT] = dict.fromkeys(self.graph.nodes)
        self._live: defaultdict[str, set[str]] = defaultdict(set)  # scope → members that have not ended
        self._live[ROOT] = set(self.graph.nodes)
        self._held: defaultdict[str, set[str]] = defaultdict(set)  # node → parents that ended as it wants
        self._broken: defaultdict[str, set[str]] = defaultdict(set)  # node → parents that ended otherwise

    @classmethod
    def restored(cls, stood: Iterable[Stood], *, is_cancelled: bool = False) -> Run:
        """A run in the middle of its life: nodes in the order in which they came."""
        run = cls([])
        for each in stood:
            run._restore(each)
        run.is_cancelled = is_cancelled
        return run

    def _restore(self, each: Stood) -> None:
        key, scope = each.node.key, each.scope
        self.graph.add(each.node)
        self.scope_of[key] = scope
        self.members[scope][key] = None
        if scope != ROOT:
            self.opened.add(scope)
        if each.is_released:
            self.released.add(key)
        for parent in self.graph.parents[key]:
            self._tell(parent, key, self.ended.get(parent))
        if each.end is None:
            self._live[scope].add(key)
        else:
            self.ended[key] = each.end

    @property
    def state(self) -> RunState:
        return self.state_of(ROOT)

    def state_of(self, scope: str) -> RunState:
        """How the members of a group stand, taken by themselves."""
        if self._live[scope]:
            return RunState.RUNNING
        if self.is_cancelled and scope == ROOT:
            return RunState.CANCELLED
        ends = ((key, self.ended[key]) for key in self.members[scope])
        uncovered = {state for key, state in ends if state in FAILURES and not self._is_covered(key)}
        if JobState.DEAD in uncovered:
            return RunState.FAILED
        return RunState.CANCELLED if uncovered else RunState.SUCCEEDED

    def start(self) -> Decision:
        """Releases the nodes that wait for nobody."""
        return self._settle(self.graph.nodes)

    def note(self, key: str, state: JobState) -> Decision:
        """The job of a node is in this state now. A terminal one is its end; any other one says that it lives again.

        What is known already leads to nothing. A node whose job was never released has no news, and a group that has
        opened ends with its members: ValueError.
        """
        if key not in self.released:
            raise ValueError(f"node {key!r} was never released")
        if key in self.opened:
            raise ValueError(f"node {key!r} ends when its members have")
        now = state if state in TERMINAL else None
        if self.ended.get(key) == now:
            return Decision(state=self.state)
        self._end(key, now)
        return self._settle(self._concerned(key))

    def add(self, nodes: Iterable[Node], scope: str = ROOT) -> Decision:
        """Nodes that come while the run goes on, in any order. A parent that ended before counts.

        ``scope``: the group that they become members of. What is there already stays as it is.
        """
        added = {node.key: node for node in nodes if node.key not in self.graph.nodes}
        for key in in_order({key: [parent for parent, _ in node.edges()] for key, node in added.items()}):
            self.graph.add(added[key])
            self.scope_of[key] = scope
            self.members[scope][key] = None
            self._live[scope].add(key)
            for parent in self.graph.parents[key]:
                self._tell(parent, key, self.ended.get(parent))
        return self._settle(added)

    def open(self, group: str, nodes: Iterable[Node]) -> Decision:
        """These are all the members that a released group opens into; it ends with them, at once if there are none."""
        if group in self.opened or group in self.ended:
            return Decision(state=self.state)
        nodes = list(nodes)
        self.opened.add(group)
        decision = self.add(nodes, group)
        return decision if nodes else self._settle([group])

    def skip(self, key: str) -> Decision:
        """Counts a node as succeeded without running it; how its job ends, if it has one, is not to be noted any more.

        ValueError for a node that has succeeded or opened into others, and in a cancelled run.
        """
        if self.is_cancelled or key in self.opened or self.ended.get(key) is JobState.SUCCEEDED:
            raise ValueError(f"node {key!r} cannot be skipped")
        self.released.add(key)
        self._end(key, JobState.SUCCEEDED)
        return self._settle(self._concerned(key))

    def cancel(self) -> Decision:
        """What waits never starts, but for nodes that are marked ``always``. Ending what runs is the caller's."""
        self.is_cancelled = True
        return self._settle(self.graph.nodes)

    def retry(self, key: str | None = None) -> Decision:
        """Has nodes run again: all that failed, or this one and everything that comes after it.

        What was skipped or cancelled because of them waits again. Without ``key``, what has run stays as it ran. The
        run is no longer cancelled. ValueError, and nothing is changed, where there is nothing to run again or where
        something that is to be decided again still runs.
        """
        redo = self.redo(key)
        self.is_cancelled = False
        for each in redo.undone:
            self._undo(each)
        for each in redo.again:
            self._close_again(each)
            self._end(each, None)
        for group in redo.live:
            self._end(group, None)
        decision = self._settle(self.graph.nodes)
        reopened = dict.fromkeys((*redo.undone, *decision.reopened))
        waiting = tuple(each for each in reopened if each not in decision.released and each not in self.ended)
        return msgspec.structs.replace(decision, released=(*redo.again, *decision.released), reopened=waiting)

    def redo(self, key: str | None = None) -> Redo:
        """What ``retry`` would do first. ValueError as there; nothing is changed."""
        again, undone = self._to_run_again(key)
        return Redo(
            again=tuple(again),
            undone=tuple(undone),
            dropped=tuple(inner for each in (*again, *undone) for inner in self._inside(each)),
            live=tuple(dict.fromkeys(group for each in again for group in self._enclosing(each))),
        )

    # --- Retry -------------------------------------------------------------------------------------------------------

    def _to_run_again(self, key: str | None) -> tuple[list[str], list[str]]:
        """(nodes whose jobs run again at once, nodes that are as if they had never run)."""
        if key is None:
            failed = [each for each, state in self.ended.items() if state in FAILURES and each in self.released]
            again = [each for each in failed if each not in self.opened]
            if not again and not self.is_cancelled:
                raise ValueError("no node has failed: name the node to begin from")
            return sorted(again, key=self.graph.rank.__getitem__), []
        if key not in self.graph.nodes:
            raise ValueError(f"there is no node {key!r}")
        if key not in self.ended:
            raise ValueError(f"node {key!r} {'still runs' if key in self.released else 'has not run yet'}")
        if key not in self.released:
            raise ValueError(f"node {key!r} was {self.ended[key]}: begin from a node that it waits for")
        undone = [each for begin in (key, *self._enclosing(key)) for each in self.graph.downstream(begin)]
        if live := [each for each in undone if each in self.released and each not in self.ended]:
            raise ValueError(f"node {live[0]!r} comes after {key!r} and still runs")
        return [key], undone

    def _inside(self, group: str) -> Iterator[str]:
        """All that a group has opened into, groups in it too."""
        if group in self.opened:
            for key in self.members[group]:
                yield key
                yield from self._inside(key)

    def _undo(self, key: str) -> None:
        """As if it had never been released."""
        self._close_again(key)
        self.released.discard(key)
        self._end(key, None)

    def _close_again(self, group: str) -> None:
        """Takes away what a group has opened into."""
        if group in self.opened:
            self.opened.discard(group)
            self._live.pop(group, None)
            inside = list(self.members.pop(group, ()))
            for key in inside:
                self._close_again(key)
                for table in (self.ended, self.scope_of, self._held, self._broken):
                    table.pop(key, None)
                self.released.discard(key)
            self.graph.remove(inside)

    # --- Looking at nodes --------------------------------------------------------------------------------------------

    def _settle(self, keys: Iterable[str]) -> Decision:
        """Looks at these nodes, then at those that are concerned by what changed, and so on."""
        moved: dict[str, list[str]] = {what: [] for what in ("released", "skipped", "cancelled", "reopened", "closed")}
        waiting = [self._order(key) for key in keys]
        heapq.heapify(waiting)
        looked_at = None
        while waiting:
            order = heapq.heappop(waiting)
            if order == looked_at:
                continue
            looked_at, key = order, order[2]
            was_over = key in self.ended
            what = self._move(key)
            if what is None:
                continue
            moved[what].append(key)
            if was_over or key in self.ended:  # others are concerned by ends, and by ends that are taken back
                for other in self._concerned(key):
                    heapq.heappush(waiting, self._order(other))
        return Decision(state=self.state, **{what: tuple(keys) for what, keys in moved.items()})

    def _order(self, key: str) -> tuple[int, int, str]:
        return -sum(1 for _ in self._enclosing(key)), self.graph.rank[key], key

    def _concerned(self, key: str) -> list[str]:
        """Who is to be looked at when this node ends or lives again."""
        scope = self.scope_of[key]
        return [*self.graph.children[key], *([scope] if scope != ROOT else [])]

    def _move(self, key: str) -> str | None:
        """Brings a node to where it belongs now; what that was, None where it was there before."""
        before = self.ended.get(key)
        if key in self.released:
            return self._move_released(key, before)
        now = self._fate(key)
        if now is JobState.READY:
            self._end(key, None)
            self.released.add(key)
            return "released"
        if now == before:
            return None
        self._end(key, now)
        return "reopened" if now is None else str(now)

    def _move_released(self, key: str, before: JobState | None) -> str | None:
        """A job says itself how it ends. A group ends with its members; and nobody need wait in a cancelled run."""
        if key in self.opened:
            now = _AS_NODE[self.state_of(key)]
            if now == before:
                return None
            self._end(key, now)
            return "reopened" if now is None else "closed"
        kind = self.graph.nodes[key].kind
        is_given_up = self.is_cancelled and before is None and not self._is_always(key)
        if is_given_up and (kind.is_group or kind.is_wait):
            self._end(key, JobState.CANCELLED)
            return "cancelled"
        return None

    def _fate(self, key: str) -> JobState | None:
        """Of a node that is no job yet: READY = it may run, a terminal state = it never will, None = it waits."""
        if self.is_cancelled and not self._is_always(key):
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
            self._live[self.scope_of[key]].add(key)
        else:
            self.ended[key] = state
            self._live[self.scope_of[key]].discard(key)
        for child in self.graph.children[key]:
            self._tell(key, child, state)

    def _tell(self, parent: str, child: str, state: JobState | None) -> None:
        self._held[child].discard(parent)
        self._broken[child].discard(parent)
        if state is not None:
            holds = state in HOLDS[self.graph.parents[child][parent]]
            (self._held if holds else self._broken)[child].add(parent)

    def _is_covered(self, key: str) -> bool:
        """Whether somebody was asked to deal with the end of this node."""
        return any(
            child in self.released and self.graph.parents[child][key] is not Edge.SUCCESS
            for child in self.graph.children[key]
        )

    def _enclosing(self, key: str) -> Iterable[str]:
        """The groups that it is in, the innermost first."""
        scope = self.scope_of[key]
        while scope != ROOT:
            yield scope
            scope = self.scope_of[scope]

    def _is_always(self, key: str) -> bool:
        """Whether it, or a group that it is in, runs in a cancelled run too."""
        return any(self.graph.nodes[each].always for each in (key, *self._enclosing(key)))


FAILURES = frozenset({JobState.DEAD, JobState.CANCELLED})
HOLDS = {Edge.SUCCESS: frozenset({JobState.SUCCEEDED}), Edge.FAILURE: FAILURES, Edge.COMPLETE: TERMINAL}
"""What is waited for → ends of the parent that it is."""
_AS_NODE = {
    RunState.RUNNING: None,
    RunState.SUCCEEDED: JobState.SUCCEEDED,
    RunState.FAILED: JobState.DEAD,
    RunState.CANCELLED: JobState.CANCELLED,
}
"""How the members of a group stand → how the group does."""
