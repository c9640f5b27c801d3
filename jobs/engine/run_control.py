"""The verbs of people, and of time, on runs: stopping, pausing and retrying them, and ending what waits in them.

Each writes facts in the slot of the run and puts on its agenda what is to be looked at; ``jobs.runtime.controlling``
and ``growing`` are who goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.workflow import Node, NodeView
from jobs.engine.batches import batches
from jobs.engine.run_nodes import Birth
from jobs.exceptions import WrongState
from jobs.store.codec.bodies import encode_header
from jobs.store.codec.ids import route_in
from jobs.store.codec.runs import STOP, encode_node
from jobs.store.connection import Store
from jobs.store.keys import RunKeys, WorkflowKeys, partition_keys

SIGNALLED = 250
"""Nodes that one call ends."""

_to_json = msgspec.json.Encoder().encode
_pack = msgspec.msgpack.Encoder().encode


class Deadline(NamedTuple):
    """When something of a run is to end. ``node``: its key; "" for the run itself."""

    run: str
    node: str
    at: int


class RunControl:
    """See the module. Verbs raise RunNotFound and WrongState; all raise StoreUnavailable or OutcomeUnknown where the
    server is away."""

    def __init__(self, store: Store, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._lists = WorkflowKeys(store.namespace)

    # --- the run ------------------------------------------------------------------------------------------------------

    def cancel(self, run_id: str, reason: dict[str, Any]) -> bool:
        """Nothing that waits starts any more, but for nodes marked ``always``. False: it was told so before."""
        return bool(self._run("workflow_cancel", run_id, reason=_to_json(reason)) == b"cancelled")

    def stopped(self, run_id: str) -> None:
        """All jobs of the cancelled run have been asked to stop."""
        self._run("workflow_stopped", run_id)

    def pause(self, run_id: str, pause: dict[str, Any] | None) -> bool:
        """No node becomes a job until the run is told to go on (None). False: it stood so before. ``RunPauses.spread``
        holds back those that are jobs."""
        return bool(self._run("workflow_pause", run_id, pause="" if pause is None else _to_json(pause)))

    def redo(
        self,
        run_id: str,
        what: dict[str, Any],
        changes: Sequence[tuple[NodeView, str]],
        lifts: Collection[str] | None,
    ) -> None:
        """Has nodes run "again", or be as if they never had ("undo"); "drop" and "live": see the script. What somebody
        else has retried since it was looked at stays as it is. ``lifts``: groups that get their time anew, if that was
        over; None: all of them.

        The run stands still meanwhile; ``what`` says what is being done, for whoever must finish it.
        """
        packed = b"" if lifts is None else _pack(lifts)
        for batch in batches(changes, limit=250):
            items = [value for view, change in batch for value in (view.rank, change, view.version, view.again)]
            self._run("workflow_redo", run_id, items, given_now=self._now(), redo=_to_json(what), lifts=packed)
        self._run("workflow_redo", run_id, given_now=self._now(), redo="", lifts=packed)

    # --- what waits in it ---------------------------------------------------------------------------------------------

    def wait(self, run_id: str, rank: int, signal: str) -> str:
        """A node waits from now on: for a signal, or ("") for a person. "waits", or how it has ended meanwhile."""
        reply: bytes = self._run("workflow_wait", run_id, given_now=self._now(), rank=rank, name=signal)
        return reply.decode()

    def waiting(self, run_id: str) -> list[int]:
        """Ranks of the nodes that wait for a signal or a person."""
        key = self._keys(run_id).waiting
        found: Any = self._store.read(lambda client: client.hkeys(key))
        return sorted(int(rank) for rank in found)

    def signal(self, run_id: str, name: str, payload: Any) -> int:
        """Ends all nodes that wait for it, with the payload as their result; how many. It is kept for those to come."""
        ended: int = 0
        while True:
            now, left = self._run(
                "workflow_signal", run_id, given_now=self._now(), name=name, payload=_to_json(payload), most=SIGNALLED
            )
            ended += now
            if not left:
                return ended

    def decide(self, run_id: str, key: str, *, result: Any = None, error: dict[str, Any] | None = None) -> str:
        """Ends one node that waits: with a result, or with an error as dead. The state that it is in then."""
        reply: bytes = self._run(
            "workflow_decide",
            run_id,
            given_now=self._now(),
            key=key,
            is_good="" if error else 1,
            result="" if error else _to_json(result),
            problem=_to_json(error) if error else "",
        )
        return reply.decode()

    def skip(self, run_id: str, key: str, *, result: Any, note: dict[str, Any]) -> str:
        """Counts one node as succeeded without running it; the id of its job where that lives, else "".

        ``note``: who skipped it and why, in the form of an error."""
        reply: bytes = self._run(
            "workflow_skip",
            run_id,
            given_now=self._now(),
            key=key,
            result="" if result is None else _to_json(result),
            note=_to_json(note),
        )
        return reply.decode()

    def told_to_stop(self, run_id: str, job_id: str) -> None:
        """The job of a node that was skipped has been asked to stop, or is gone."""
        key = self._keys(run_id).run
        self._store.call(lambda client: client.hdel(key, STOP + job_id))

    # --- groups -------------------------------------------------------------------------------------------------------

    def unfold(self, run_id: str, group: str, *, is_whole: bool) -> str:
        """A group begins to open, or all of its members are there; "opening", "open", or how it has ended."""
        reply: bytes = self._run("workflow_unfold", run_id, group=group, is_whole=1 if is_whole else "")
        return reply.decode()

    def cut(self, run_id: str, group: str, inside: Sequence[str], error: dict[str, Any]) -> str:
        """The time of a group is over: nothing of it starts any more, nor of the groups in it (``inside``), but for
        nodes marked ``always``. "cut", or how it has ended."""
        reply: bytes = self._run("workflow_cut", run_id, inside, group=group, problem=_to_json(error))
        return reply.decode()

    def revive(self, run_id: str, nodes: Iterable[Node]) -> int:
        """Of these members of a group that opens anew, those that it had before wait again; how many."""
        revived = 0
        for batch in batches(nodes, limit=250):
            items: list[Any] = []
            for node in batch:
                items += (node.key, encode_node(node))
            revived += self._run("workflow_revive", run_id, items)
        return revived

    def resubmit(self, births: Iterable[Birth]) -> dict[str, str]:
        """Makes ended jobs of nodes live again, each once for every number of ``again``; by id: "ok", "there" (it does
        already), "living" (not before its present life has ended) or "unreadable"."""
        answers: dict[str, str] = {}
        groups: dict[Any, list[Birth]] = {}
        for birth in births:
            groups.setdefault(route_in(birth.id), []).append(birth)
        for route, group in groups.items():
            for batch in batches(group, lambda birth: len(birth.payload), limit=200):
                items: list[Any] = []
                for birth in batch:
                    body = encode_header(birth.spec) + birth.payload
                    items += (birth.id, f"{birth.run}\n{birth.node}", birth.again, body)
                keys = partition_keys(self._store.namespace, route)
                made = self._store.run("node_resubmit", keys, items, given_now=self._now())
                answers.update(zip((birth.id for birth in batch), (answer.decode() for answer in made), strict=True))
        return answers

    # --- deadlines ----------------------------------------------------------------------------------------------------

    def set_deadline(self, run_id: str, at_ms: int, node: str = "") -> None:
        """The run, or a node that waits in it, is to be over by then (server ms). The last call counts."""
        self._store.call(lambda client: client.zadd(self._lists.deadlines, {f"{run_id}\n{node}": at_ms}))

    def due_deadlines(self, limit: int = 100) -> list[Deadline]:
        """Those that are over."""
        now = self.server_now_ms()
        found: Any = self._store.read(
            lambda client: client.zrange(
                self._lists.deadlines, "-inf", now, byscore=True, offset=0, num=limit, withscores=True
            )
        )
        return [_deadline(member.decode(), int(score)) for member, score in found]

    def next_deadline(self) -> int | None:
        """When the next one is over, server ms."""
        found: Any = self._store.read(lambda client: client.zrange(self._lists.deadlines, 0, 0, withscores=True))
        return int(found[0][1]) if found else None

    def met(self, deadline: Deadline) -> None:
        """It was seen to; a later one of the same node stays."""
        self._store.run("workflow_met", self._lists, run=f"{deadline.run}\n{deadline.node}", at=deadline.at)

    def server_now_ms(self) -> int:
        """The time of the server."""
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now

    def _run(self, script: str, run_id: str, items: Sequence[Any] = (), /, **arguments: Any) -> Any:
        try:
            return self._store.run(script, self._keys(run_id), items, **arguments)
        except WrongState as error:
            raise WrongState(f"{error.state or 'that'} does not allow this", state=error.state) from None

    def _keys(self, run_id: str) -> RunKeys:
        return RunKeys(self._store.namespace, run_id)

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def _deadline(member: str, at: int) -> Deadline:
    run_id, _, node = member.partition("\n")
    return Deadline(run_id, node, at)
