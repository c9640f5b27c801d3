"""What the ended nodes of a run have left: results and errors, also of groups, which have them from their members.

The result of a group is made when somebody asks for it. How large it would be is counted before it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jobs.core.parents import SUCCEEDED, cut_result, is_cut
from jobs.core.workflow import Definition, Ended, Kind, NodeView
from jobs.engine.batches import batches
from jobs.engine.run_reads import PAGE, RunReads
from jobs.store.codec.runs import decode_json, decode_state

GROUP_LIMIT = 16
"""The result of a group, or those of all parents of a node, may have so many times the bytes of one result."""


class RunResults(RunReads):
    """See the module. Raises StoreUnavailable where the server is away."""

    def parents(self, run_id: str, keys: Iterable[str]) -> dict[str, Ended]:
        """How these nodes have ended, by key; those that have not are left out. A result that is too large to be handed
        on is one that ``jobs.core.parents.is_cut``, and so is one for which those before it leave no room."""
        wanted = [*keys]
        cut = self._without_room(run_id, wanted)
        found = self._ended_of(run_id, (key for key in wanted if key not in cut), None)
        return found | {key: Ended(SUCCEEDED, result) for key, result in cut.items()}

    def results(self, run_id: str) -> dict[str, Any]:
        """Results of the nodes that nobody waits for, by key: the result of the run. Those for which there is no room
        any more, since the ones before are as large, are cut."""
        views = [view for view in self.all_nodes(run_id) if not view.scope]
        awaited = {parent for view in views for parent, _ in view.node.edges()}
        last = [view.key for view in views if view.key not in awaited and view.state == SUCCEEDED]
        read = self.parents(run_id, last)
        return {key: read[key].result for key in last if key in read}

    def _without_room(self, run_id: str, keys: Sequence[str]) -> dict[str, Any]:
        """What stands for the results of those of these nodes whose bytes, with those before them, are too many."""
        cut: dict[str, Any] = {}
        left = GROUP_LIMIT * self._settings.result_limit
        for batch in batches(keys, limit=PAGE) if len(keys) > GROUP_LIMIT else ():  # so few are never too large
            ranks = self._ranks(run_id, batch)
            known = [(key, rank) for key, rank in zip(batch, ranks, strict=True) if rank is not None]
            for (key, _), size in zip(known, self._sizes(run_id, [rank for _, rank in known]), strict=True):
                left -= size
                if size and left < 0:  # without one it may have ended otherwise, or not yet
                    cut[key] = cut_result(size)
        return cut

    def _ended_of(self, run_id: str, keys: Iterable[str], room: _Room | None) -> dict[str, Ended]:
        """``room``: for the results of the group that they are members of."""
        found: dict[str, Ended] = {}
        for batch in batches(keys, limit=PAGE):
            ranks = self._ranks(run_id, batch)
            known = [(key, rank) for key, rank in zip(batch, ranks, strict=True) if rank is not None]
            if room is not None:
                room.take(sum(self._sizes(run_id, [rank for _, rank in known])))
            found.update(self._ended(run_id, known, room))
        return found

    def _ended(self, run_id: str, known: Sequence[tuple[str, int]], room: _Room | None) -> dict[str, Ended]:
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
                    found[key] = self._group_ended(run_id, key, room) or found[key]
        return found

    def _group_ended(self, run_id: str, key: str, room: _Room | None) -> Ended | None:
        """How a group has ended, made of how its members have; None where it is none."""
        view = self.node(run_id, key)
        if view is None or not view.node.kind.is_group:
            return None
        if view.state != SUCCEEDED:
            failures = self._keys(run_id).failures_of + key
            count = self._store.read(lambda client: client.zcard(failures))
            error = {"type": "GroupFailed", "message": f"{count} of the nodes in {key!r} failed", "traceback": ""}
            return Ended(view.state, None, error)
        if room is not None:  # it is in a group itself, which has no more room because of it
            return Ended(view.state, self._group_result(run_id, view, room))
        room = _Room(GROUP_LIMIT * self._settings.result_limit)
        try:
            return Ended(view.state, self._group_result(run_id, view, room))
        except _TooLargeError:
            return Ended(view.state, cut_result(room.taken))

    def _group_result(self, run_id: str, view: NodeView, room: _Room) -> Any:
        if view.node.kind is Kind.EACH:
            return self._results_of_each(run_id, view.key, room)
        inside = view.node.workflow.nodes if isinstance(view.node.workflow, Definition) else ()
        awaited = {parent for node in inside for parent, _ in node.edges()}
        prefix = f"{view.key}:"
        ended = self._ended_of(run_id, [prefix + node.key for node in inside if node.key not in awaited], room)
        return {name.removeprefix(prefix): room.whole(each) for name, each in ended.items() if each.state == SUCCEEDED}

    def _results_of_each(self, run_id: str, group: str, room: _Room) -> list[Any]:
        """Results of the members in the order of the list; None for one that did not succeed."""
        found: list[Any] = []
        while True:
            keys = [f"{group}:{index}" for index in range(len(found), len(found) + PAGE)]
            known = self.known(run_id, keys)
            ended = self._ended_of(run_id, known, room)
            page = [room.whole(ended[key]) if key in ended else None for key in keys if key in known]
            found += page
            if len(page) < PAGE:
                return found

    def _sizes(self, run_id: str, ranks: Sequence[int]) -> list[int]:
        """Bytes of the results of these nodes."""
        key = self._keys(run_id).results

        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            for rank in ranks:
                pipeline.hstrlen(key, rank)
            return list(pipeline.execute())

        return self._store.read(send) if ranks else []


class _TooLargeError(Exception):
    """The results of a group have more bytes than are handed on."""


class _Room:
    """For the results of one group, those of groups in it too."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.taken = 0

    def take(self, size: int) -> None:
        """_TooLargeError where there is not as much room."""
        self.taken += size
        if self.taken > self._limit:
            raise _TooLargeError

    def whole(self, ended: Ended) -> Any:
        """The result, if it was kept as it is: of a part nothing good is made."""
        if is_cut(ended.result):
            self.taken += ended.result["bytes"]
            raise _TooLargeError
        return ended.result
