"""The verbs on bulk operations: one thing done to every job that matched a filter at one moment.

An operation first writes down which jobs they are, then acts on them part by part. Whoever takes a part holds a claim
on it for a while; what became of it and the step to the next part are one write that compares the claim. So any host
goes on where another died, and a part that may have been done before is said to be when it is taken again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from jobs.core.bulk import BulkAction
from jobs.core.clock import Clock
from jobs.engine.listing import JobFilter
from jobs.exceptions import SchedulerError, WrongState
from jobs.store.connection import Store
from jobs.store.keys import BulkKeys

OPERATIONS_KEPT = 100
"""The newest are kept with what became of each job, and those that are still under way."""

HOLD_MS = 30_000
"""How long a claim on a part lasts. A part is a fraction of a second's work; a listing may look at 5,000 jobs."""

PARTS_READ = 10
"""Parts whose refusals are read at once: a part may hold hundreds, and a page shows a few dozen every second."""

RUNNING = ("selecting", "running", "stopping")

BulkState = Literal["selecting", "waiting", "running", "stopping", "done", "cancelled"]


class BulkNotFound(SchedulerError):
    """There is no bulk operation of this id (any more)."""

    code = "bulk_not_found"


class BulkFull(SchedulerError):
    """Too many bulk operations are under way."""

    code = "bulk_full"


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything about an operation that never changes.

    ``filter`` names its states and the moment (``until``) that freezes it. ``rate``: at most so many jobs a second.
    ``trial``: so many first, then it waits for a word to go on. ``undoes``: an operation whose jobs are taken back as
    far as they have not started. ``chosen``: so many jobs were named one by one. ``pool`` and ``priority``: what they
    get, where they are moved or prioritized.
    """

    action: BulkAction
    filter: JobFilter
    by: str = ""
    source: str = ""
    reason: str = ""
    rate: float | None = None
    trial: int = 0
    undoes: str = ""
    chosen: int = 0
    pool: str = ""
    priority: int = 0


class BulkOperation(msgspec.Struct, frozen=True, kw_only=True):
    """One operation as it stands. ``total`` is how many jobs were selected so far; while ``selecting`` it grows.

    ``done``, ``refused`` and ``unsure`` add up to ``total`` when it is done. ``unsure``: they belonged to a part whose
    host died, and were found to have lived on: done by it before, or by somebody else since.
    """

    id: str
    request: BulkRequest
    state: BulkState
    total: int
    looked: int
    done: int
    refused: int
    unsure: int
    confirmed: int
    parts: int
    next: int
    cursor: str
    opened_at_ms: int
    begins_at_ms: int
    began_at_ms: int | None
    ended_at_ms: int | None

    @property
    def handled(self) -> int:
        return self.done + self.refused + self.unsure

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "cancelled")


class Part(NamedTuple):
    """What was taken: the operation, and the ids to act on (none while it is selecting)."""

    operation: BulkOperation
    token: str
    ids: list[str]
    again: bool
    """It was handed out before, to a host that died or was too slow."""


class Bulk:
    """See the module. Raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._keys = BulkKeys(store.namespace)

    # --- what people say --------------------------------------------------------------------------------------------

    def open(
        self,
        id: str,
        request: BulkRequest,
        *,
        confirmed: int,
        begins_ms: int = 0,
        parts: Sequence[Sequence[str]] = (),
    ) -> bool:
        """Writes the operation down; False where this id has been opened before. ``parts``: the ids of its jobs, where
        they were named one by one; else they are looked for. BulkFull.
        """
        answer = self._run(
            "bulk_open",
            _packed(parts),
            found=sum(map(len, parts)),
            id=id,
            request=msgspec.json.encode(request),
            confirmed=confirmed,
            begins=begins_ms,
            keep=OPERATIONS_KEPT,
        )
        if answer == b"full":
            raise BulkFull(
                f"{2 * OPERATIONS_KEPT} bulk operations are under way.", fix="Wait for some to end, or cancel some."
            )
        return bool(answer == b"ok")

    def confirm(self, id: str, number: int) -> None:
        """Lets one act that waits for it. BulkNotFound; WrongState where it does not wait, or for another number."""
        answer = self._run("bulk_confirm", id=id, number=number).decode()
        if answer == "count":
            raise WrongState(
                f"The operation is on {self.get(id).total:,} jobs, not {number:,}.", fix="Look at it and confirm again."
            )
        if answer != "ok":
            self._refuse(id, answer, "it waits for no confirmation")

    def cancel(self, id: str) -> str:
        """Stops it; what was done stays done. The state it is in then: cancelled, or stopping for a moment.

        BulkNotFound; WrongState where it is over.
        """
        before = self.get(id)
        if before.is_over:
            self._refuse(id, before.state, "it is over")
        return str(self._run("bulk_cancel", id=id, hold_ms=HOLD_MS).decode())

    def _refuse(self, id: str, state: str, why: str) -> None:
        if not state:
            raise _not_found(id)
        raise WrongState(f"Bulk operation {id} is {state}: {why}.", state=state, fix="Look at it first.")

    # --- what hosts do ----------------------------------------------------------------------------------------------

    def take(self, token: str, id: str = "") -> Part | int | None:
        """The next part of any operation, or of this one; the ms until one is due; None where none is."""
        reply = self._run("bulk_take", wanted=id, token=token, hold_ms=HOLD_MS)
        if not reply[0]:
            return int(reply[1]) if reply[1] else None
        taken, again, facts, items = reply
        operation = _operation(taken.decode(), dict(zip(facts[::2], facts[1::2], strict=True)))
        ids = msgspec.msgpack.decode(items, type=list[str]) if items and operation.state != "selecting" else []
        return Part(operation, token, ids, bool(again))

    def select(self, part: Part, parts: Sequence[Sequence[str]], *, cursor: str, looked: int) -> None:
        """Adds what a stretch of the list held. LeaseLost."""
        found = sum(len(ids) for ids in parts)
        facts = {"id": part.operation.id, "token": part.token, "cursor": cursor, "looked": looked, "found": found}
        self._run("bulk_select", _packed(parts), **facts)

    def settle(self, part: Part, *, done: int, refused: Mapping[str, str], unsure: int, pause_ms: int) -> None:
        """Writes down what became of a part, ``refused`` by id with the reason. LeaseLost."""
        self._run(
            "bulk_settle",
            id=part.operation.id,
            token=part.token,
            done=done,
            refused=len(refused),
            unsure=unsure,
            results=msgspec.msgpack.encode(refused) if refused else b"",
            pause_ms=pause_ms,
            trial="1" if part.operation.request.trial else "",
        )

    # --- looking ----------------------------------------------------------------------------------------------------

    def get(self, id: str) -> BulkOperation:
        """How it stands. BulkNotFound."""
        found = self._read([id])
        if not found:
            raise _not_found(id)
        return found[0]

    def newest(self, limit: int = OPERATIONS_KEPT) -> list[BulkOperation]:
        """The operations that are kept, newest first."""
        ids: Any = self._store.read(lambda client: client.zrevrange(self._keys.order, 0, limit - 1))
        return self._read([id.decode() for id in ids])

    def _read(self, ids: list[str]) -> list[BulkOperation]:
        def send(client: Any) -> Any:
            pipeline = client.pipeline(transaction=False)
            for id in ids:
                pipeline.hgetall(self._keys.facts_of + id)
            return pipeline.execute()

        replies = self._store.read(send) if ids else []
        return [_operation(id, facts) for id, facts in zip(ids, replies, strict=True) if facts]

    def part(self, id: str, number: int) -> list[tuple[str, str | None]]:
        """The jobs of a part, each with why it was not done to it (None: nothing went wrong, or not its turn yet)."""

        def send(client: Any) -> Any:
            pipeline = client.pipeline(transaction=False)
            pipeline.hget(self._keys.items_of + id, number)
            pipeline.hget(self._keys.results_of + id, number)
            return pipeline.execute()

        items, results = self._store.read(send)
        refused = msgspec.msgpack.decode(results, type=dict[str, str]) if results else {}
        return [(job, refused.get(job)) for job in (msgspec.msgpack.decode(items, type=list[str]) if items else [])]

    def refusals(self, id: str, limit: int) -> dict[str, str]:
        """Why it was not done, by job, for the first ``limit`` of them."""
        key, found = self._keys.results_of + id, dict[str, str]()
        known: Any = self._store.read(lambda client: client.hkeys(key))
        numbers = sorted(map(int, known))
        while numbers and len(found) < limit:
            some, numbers = numbers[:PARTS_READ], numbers[PARTS_READ:]
            packs: Any = self._store.read(partial(_of_hash, key=key, fields=some))
            for packed in packs:
                found |= msgspec.msgpack.decode(packed, type=dict[str, str]) if packed else {}
        return dict(list(found.items())[:limit])

    def _run(self, name: str, items: Sequence[Any] = (), **arguments: Any) -> Any:
        now = self._clock.now_ms()
        return self._store.run(name, self._keys, items, given_now="" if now is None else now, **arguments)


def _packed(parts: Sequence[Sequence[str]]) -> list[bytes]:
    return [msgspec.msgpack.encode(list(ids)) for ids in parts]


def _of_hash(client: Any, key: str, fields: Sequence[int]) -> Any:
    return client.hmget(key, fields)


def _operation(id: str, facts: Mapping[bytes, bytes]) -> BulkOperation:
    def number(name: str) -> int:
        return int(float(facts.get(name.encode(), b"0")))

    return BulkOperation(
        id=id,
        request=msgspec.json.decode(facts[b"request"], type=BulkRequest),
        state=facts[b"state"].decode(),  # type: ignore[arg-type]  # the scripts write no other
        total=number("total"),
        looked=number("looked"),
        done=number("done"),
        refused=number("refused"),
        unsure=number("unsure"),
        confirmed=number("confirmed"),
        parts=number("parts"),
        next=number("next"),
        cursor=facts.get(b"cursor", b"").decode(),
        opened_at_ms=number("opened_at"),
        begins_at_ms=number("begins_at"),
        began_at_ms=number("began_at") or None,
        ended_at_ms=number("ended_at") or None,
    )


def _not_found(id: str) -> BulkNotFound:
    return BulkNotFound(f"There is no bulk operation {id!r} (any more).", fix="`manage.py bulk list` shows those kept.")
