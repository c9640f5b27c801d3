"""The verbs on schedules: taking what is due, moving it on, and keeping the definitions that the database has.

A firing spans two slots, its schedule's and its job's, and goes in steps that may all be repeated: ``take`` claims it,
``fire`` makes the job under an id that was fixed before, ``advance`` moves the schedule on by compare-and-set. Whoever
comes after a claim has lapsed does the same again and finds what is there; whoever is late can do nothing: ``fire`` is
refused after the time for which a claim lasts, and ``advance`` without the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from jobs.conf import Settings
from jobs.core.clock import Clock
from jobs.core.job import JobSpec, Route
from jobs.core.schedule.definition import Stored
from jobs.core.schedule.plan import State
from jobs.engine.batches import batches
from jobs.store.codec.bodies import encode_header
from jobs.store.codec.ids import derived_id, route_in
from jobs.store.connection import Store
from jobs.store.keys import ScheduleKeys, partition_keys

CLAIM_MS = 6_000
"""How long a claim lasts: after as long another host does what the first one left undone."""
FIRE_MS = 4_000
"""How long of it a job may be created. The rest is for servers of a cluster whose clocks differ."""
JUMP_MS = 15_000
"""A server's clock that gained as much on ours has been set forward, or ours was not running."""

BATCH = 200
"""Schedules in one call."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One entry of a schedule's history. Times are Unix milliseconds."""

    due: int
    """The nominal time; of several that were skipped together, the first."""
    at: int
    """When it was dealt with."""
    outcome: str
    """``fired`` or ``skipped``."""
    job: str | None = None
    reason: str = ""
    """Why it was skipped, or why a person had it made."""
    until: int | None = None
    """Of several: the last."""
    count: int | None = 1
    """How many they are; None: more than were counted."""
    by: str | None = None
    """Who asked for it; None: nobody, it was due."""


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """What the store holds of one definition."""

    stored: Stored
    edited_at: int = 0
    """When its rhythm was last changed while a firing was due, server ms."""


class Taken(NamedTuple):
    """A schedule that was due, and the claim on it."""

    name: str
    raw_state: bytes
    state: State | None
    kept: Kept | None
    number: int
    """Of the claim: above 1, another held one before and did not finish."""
    first_at: int


class TakeReply(NamedTuple):
    now: int
    sequence: int
    next_at: int | None
    jump: tuple[int, int]
    items: list[Taken]
    is_behind: bool
    """The store has seen less than the caller: it was put back or emptied, and nothing was taken."""


class Step(NamedTuple):
    """What becomes of a schedule that was taken. ``look_at``: None never, "" = the claim stays."""

    taken: Taken
    state: State
    look_at: int | str | None
    record: Record | None = None
    replaces: Record | None = None
    """An earlier record, in whose place this one comes."""


class Firing(NamedTuple):
    """A job that is to be made."""

    id: str
    spec: JobSpec
    payload: bytes


class Put(NamedTuple):
    """A definition to be stored, and the state that it begins with (None: the state stays)."""

    stored: Stored
    seen: bytes
    state: State | None
    look_at: int | None = None
    edited_at: int = 0
    record: Record | None = None
    forced: bool = False
    """Whatever state there is, and whoever has a claim on it."""


class Live(NamedTuple):
    """What the store knows of one schedule."""

    state: State | None
    raw_state: bytes
    kept: Kept | None
    records: list[Record]


_encode = msgspec.msgpack.Encoder().encode
_decode_state = msgspec.msgpack.Decoder(State).decode
_decode_kept = msgspec.msgpack.Decoder(Kept).decode
_encode_record = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(Record).decode


class Schedules:
    """See the module. Every verb raises StoreUnavailable or OutcomeUnknown where the server is away."""

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, pending_limit: Callable[[JobSpec], int | None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._pending_limit = pending_limit  # how many jobs may wait where a new one goes
        self._keys = ScheduleKeys(store.namespace)
        self._history: dict[str, Any] = {"kept": settings.firings_kept, "kept_ms": int(settings.firings_seconds * 1000)}

    # --- firing -------------------------------------------------------------------------------------------------------

    def take(self, token: str, *, limit: int = BATCH, known_sequence: int = 0) -> TakeReply:
        """Claims what is due. ``known_sequence``: the highest of the replies so far."""
        reply = self._store.run(
            "schedule_take",
            self._keys,
            given_now=self._now(),
            token=token,
            claim_ms=CLAIM_MS,
            limit=limit,
            known_sequence=known_sequence,
        )
        now, sequence, next_at, jump_from, jump_until, *rest = reply
        return TakeReply(
            now=int(now),
            sequence=int(sequence),
            next_at=int(next_at) if next_at != b"" else None,
            jump=(int(jump_from), int(jump_until)),
            items=[_taken(*rest[at : at + 5]) for at in range(0, len(rest), 5)],
            is_behind=int(sequence) < known_sequence,
        )

    def tell_jump(self, jump: tuple[int, int]) -> None:
        """Lets every host know of times that the server's clock jumped over."""
        told: dict[str, Any] = {"jump_from": jump[0], "jump_until": jump[1]}
        self._store.call(lambda client: client.hset(self._keys.control, mapping=told))

    def fire(self, firings: Iterable[Firing], *, not_after: int) -> dict[str, str]:
        """Makes the jobs; by id: "created", "there" (a job has the id), "late" or "full" (nothing was made)."""
        answers: dict[str, str] = {}
        ordered = sorted(firings, key=_kind_of_job)
        for (route, type_name, priority), group in groupby(ordered, key=_kind_of_job):
            for batch in batches(group, lambda firing: len(firing.payload)):
                items: list[Any] = []
                for firing in batch:
                    items += (firing.id, encode_header(firing.spec) + firing.payload)
                limit = self._pending_limit(batch[0].spec)
                _, *made = self._store.run(
                    "job_fire",
                    partition_keys(self._store.namespace, route),
                    items,
                    given_now=self._now(),
                    type=type_name,
                    priority=priority,
                    not_after=not_after,
                    max_pending="" if limit is None else limit,
                )
                answers.update(zip((firing.id for firing in batch), (answer.decode() for answer in made), strict=True))
        return answers

    def advance(self, token: str, steps: Sequence[Step], *, at: int) -> list[bool]:
        """Moves schedules on; False for each on which our claim has lapsed. ``at``: the time of the records."""
        answers: list[bool] = []
        for batch in batches(steps, limit=BATCH):
            items: list[Any] = []
            for step in batch:
                look_at = "" if step.look_at is None else step.look_at if step.look_at != "" else "-"
                records = (b"" if kept is None else _encode_record(kept) for kept in (step.record, step.replaces))
                items += (step.taken.name, step.taken.raw_state, _encode(step.state), look_at, *records)
            reply = self._store.run(
                "schedule_advance",
                self._keys,
                items,
                token=token,
                at=at,
                fired_until=max(step.state.last for step in batch),
                **self._history,
            )
            answers += map(bool, reply)
        return answers

    def raw(self, state: State) -> bytes:
        """The state as it is stored."""
        return _encode(state)

    # --- definitions --------------------------------------------------------------------------------------------------

    def put(self, puts: Iterable[Put], *, at: int, forced: bool = False) -> list[bool]:
        """Stores definitions; False where a state was to begin anew and the schedule was claimed or has moved."""
        answers: list[bool] = []
        for batch in batches(puts, limit=BATCH):
            items: list[Any] = []
            for put in batch:
                items += (
                    put.stored.name,
                    put.stored.digest,
                    _encode(Kept(put.stored, put.edited_at)),
                    put.seen,
                    b"" if put.state is None else _encode(put.state),
                    "" if put.look_at is None else put.look_at,
                    b"" if put.record is None else _encode_record(put.record),
                )
            answers += map(
                bool,
                self._store.run(
                    "schedule_put", self._keys, items, at=at, forced="1" if forced else "", **self._history
                ),
            )
        return answers

    def remove(self, names: Iterable[str]) -> int:
        """Forgets schedules; how many there were. Their jobs stay."""
        return sum(
            self._store.run("schedule_remove", self._keys, batch) for batch in batches(names, limit=BATCH) if batch
        )

    def digests(self, names: Sequence[str]) -> list[str | None]:
        """The digests of the definitions, None for what is not there."""
        raw: Any = self._store.read(lambda client: client.hmget(self._keys.digests, names)) if names else []
        return [None if digest is None else digest.decode() for digest in raw]

    def count(self) -> int:
        """How many definitions there are."""
        return int(self._store.read(lambda client: client.hlen(self._keys.digests)))

    def names(self) -> Iterator[str]:
        """All names, in no order; one may come twice."""
        cursor = 0
        while True:
            cursor, found = self._store.read(lambda client: client.hscan(self._keys.digests, cursor, count=1000))  # noqa: B023
            yield from (name.decode() for name in found)
            if cursor == 0:
                return

    def pulse(self, known: str, new: str) -> tuple[bool, int, int]:
        """Leaves a new pulse ("" leaves none): whether the last one is still there, so that this is the store that its
        keeper knows; the latest nominal time that was dealt with; how many definitions there are."""
        is_same, fired_until, count = self._store.run("schedule_pulse", self._keys, known_pulse=known, pulse=new)
        return bool(is_same), int(fired_until), int(count)

    # --- looking ------------------------------------------------------------------------------------------------------

    def read(self, names: Sequence[str], *, records: int = 0) -> list[Live]:
        """What the store knows of these schedules, with their newest records; five round trips for 1,000."""
        found: list[Live] = []
        for batch in batches(names, limit=BATCH):
            found += self._read(batch, records)
        return found

    def _read(self, names: Sequence[str], records: int) -> list[Live]:
        def send(client: Any) -> list[Any]:
            pipeline = client.pipeline(transaction=False)
            pipeline.hmget(self._keys.states, names)
            pipeline.hmget(self._keys.definitions, names)
            for name in names if records else ():
                pipeline.zrange(self._keys.firings + name, 0, records - 1, desc=True)
            return list(pipeline.execute())

        states, definitions, *histories = self._store.read(send)
        return [
            Live(
                state=_state(states[at]),
                raw_state=states[at] or b"",
                kept=_kept(definitions[at]),
                records=_records(histories[at]) if records else [],
            )
            for at in range(len(names))
        ]

    def overdue(self, before: int, limit: int = 1000) -> list[tuple[str, int]]:
        """Schedules that were to be looked at before this time and are not even claimed: name and when."""
        found: Any = self._store.read(
            lambda client: client.zrange(
                self._keys.due, "-inf", before, byscore=True, offset=0, num=limit, withscores=True
            )
        )
        return [(name.decode(), int(score)) for name, score in found]

    def passed_over(self, since: int, limit: int = 1000) -> list[str]:
        """Schedules of which something was due and dealt with from this time on. Reads all states, until it has found
        so many; nothing, where nothing was due at all."""
        *_, fired_until, _ = self.pulse("", "")
        if fired_until < since:
            return []
        found: dict[str, None] = {}
        cursor = None
        while cursor != 0 and len(found) < limit:
            cursor, states = self._store.read(lambda client: client.hscan(self._keys.states, cursor or 0, count=1000))  # noqa: B023
            for name, raw in states.items():
                if (state := _state(raw)) is not None and state.last >= since:
                    found[name.decode()] = None
        return [*found][:limit]

    def note(self, name: str, record: Record, *, seen: bytes = b"", state: State | None = None, at: int) -> bool:
        """Adds a record of what a person had done, and, if its state is still the one seen, the new state."""
        return bool(
            self._store.run(
                "schedule_record",
                self._keys,
                name=name,
                seen=seen if state is not None else b"",
                state=b"" if state is None else _encode(state),
                record=_encode_record(record),
                at=at,
                **self._history,
            )
        )

    def server_now_ms(self) -> int:
        """The time by which schedules are due."""
        now = self._clock.now_ms()
        return self._store.time_ms() if now is None else now

    def _now(self) -> Any:
        now = self._clock.now_ms()
        return "" if now is None else now


def firing_id(name: str, nominal: int, route: Route) -> str:
    """The id of the job of a firing: the same wherever and whenever it is made, and no other's."""
    return derived_id(nominal, f"schedule\0{name}", route)


def _kind_of_job(firing: Firing) -> tuple[Route, str, int]:
    route = route_in(firing.id)
    assert route is not None
    return route, firing.spec.type, firing.spec.priority


def _taken(name: bytes, state: bytes, kept: bytes, number: int, first_at: int) -> Taken:
    return Taken(name.decode(), state, _state(state), _kept(kept), int(number), int(first_at))


def _state(raw: bytes | None) -> State | None:
    try:
        return _decode_state(raw) if raw else None
    except msgspec.MsgspecError:
        return None


def _kept(raw: bytes | None) -> Kept | None:
    try:
        return _decode_kept(raw) if raw else None
    except msgspec.MsgspecError:
        return None


def _records(raw: Iterable[bytes]) -> list[Record]:
    found = []
    for entry in raw:
        try:
            found.append(_decode_record(entry))
        except msgspec.MsgspecError:
            continue
    return found
