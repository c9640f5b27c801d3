"""What becomes of a schedule that is due: pure decisions over its definition, its state and the time.

Each step deals with the one nominal time that the state names, and is written down before the next one is begun; so a
step can be taken again by anybody, at any later time, and comes out the same. Times are Unix milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import islice
from typing import NamedTuple

import msgspec

from jobs.core.job import moment
from jobs.core.schedule.definition import Stored
from jobs.core.schedule.kinds import Rule

COUNTED = 1_000
"""Firings of a skipped stretch are counted up to so many; of a longer one only begin and end are kept."""

OWED_SECONDS = 60.0
"""A firing that somebody took in time and did not finish is fired by whoever takes it next, so late at most."""

KEPT_JOBS = 5
"""Jobs of a schedule that are asked whether they have ended, where an overlap matters."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Held(msgspec.Struct, frozen=True, array_like=True):
    """A firing that waits until the job before it has ended."""

    nominal: int
    job: str


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """Firings that were skipped one after the other for one reason: they are one record, which grows."""

    due: int
    """The first of them."""
    until: int
    count: int
    at: int
    """When the last of them was dealt with: the time of the record."""
    reason: str


class State(msgspec.Struct, frozen=True, array_like=True):
    """How far a schedule is. Kept in the store, replaced by compare-and-set."""

    nominal: int | None
    """The next nominal time to be dealt with; None: there is none."""
    act_at: int = 0
    """When: the nominal time and its jitter."""
    rhythm: str = ""
    """The rhythm (see ``Stored``) that ``nominal`` was computed from."""
    job: str = ""
    """The id of its job, decided beforehand: whoever fires it makes the same one. Empty: not decided yet."""
    firings: int = 0
    catch_up: int = 0
    """This firing and as many less one after it are made up for, however late they are."""
    held: Held | None = None
    recent: tuple[str, ...] = ()
    """Its last jobs, newest first."""
    last: int = 0
    """The latest nominal time that was dealt with."""
    error: str = ""
    """Why the last firing failed."""
    stretch: Stretch | None = None
    """What was skipped last, since the last firing."""


class Circumstances(NamedTuple):
    """What a decision depends on besides the schedule itself."""

    now: int
    taken_at: int
    """When this firing was first taken: whether it is late is decided by that."""
    is_retry: bool = False
    everything_paused: bool = False
    jump: tuple[int, int] = (0, 0)
    """Times that the server's clock jumped over: after the first, up to the second."""


class Fire(NamedTuple):
    """A job is made for the nominal time of the state; ``held``: for the one that waited."""

    held: bool = False


class Hold(NamedTuple):
    """The firing waits until the jobs before it have ended."""


class Skip(NamedTuple):
    """What is due from the nominal time of the state up to ``until`` makes no job. ``next_nominal`` comes after it."""

    reason: str
    until: int
    number: int | None
    next_nominal: int | None
    catch_up: int = 0


class Drop(NamedTuple):
    """The firing that waited makes no job."""

    reason: str


class Renew(NamedTuple):
    """The nominal time is of a rhythm that holds no more, or there is none: the state begins anew from ``nominal``."""

    nominal: int | None
    catch_up: int = 0


class Wait(NamedTuple):
    """Nothing is to be done yet."""


Decision = Fire | Hold | Skip | Drop | Renew | Wait


class Plan:
    """The decisions over one schedule. Raises ScheduleInvalid where its definition cannot fire."""

    def __init__(self, stored: Stored, *, edited_at: int = 0) -> None:
        self.stored = stored
        self.definition = stored.definition
        self.rule: Rule = self.definition.rule(stored.created_at)
        self.edited_at = edited_at  # when the rhythm was last changed

    # --- times --------------------------------------------------------------------------------------------------------

    def next_after(self, at: int) -> int | None:
        """The first nominal time later than ``at`` between start and end of the schedule."""
        if not self.definition.enabled:
            return None
        start, end = self.definition.starts_at, self.definition.ends_at
        after = moment(at)
        if start is not None and after < start:
            after = start - timedelta(milliseconds=1)
        nominal = self.rule.next_after(after)
        return None if nominal is None or (end is not None and nominal >= end) else milliseconds_of(nominal)

    def act_at(self, nominal: int) -> int:
        """The nominal time and its jitter, which is the same for the same firing wherever it is computed.

        It reaches at most up to the nominal time that follows.
        """
        longest = self.definition.jitter_seconds * 1000
        if not longest:
            return nominal
        following = self.next_after(nominal)
        if following is not None:
            longest = min(longest, following - nominal)
        digest = blake2b(f"{self.definition.name}\0{nominal}".encode(), digest_size=8).digest()
        return nominal + int(int.from_bytes(digest, "big") / 2**64 * longest)

    def between(self, first: int, until: int) -> Iterator[int]:
        """The nominal times from ``first``, itself one, up to and including ``until``."""
        at: int | None = first
        while at is not None and at <= until:
            yield at
            at = self.next_after(at)

    def latest(self, first: int, until: int, count: int) -> list[int]:
        """The last ``count`` of them.

        They may be thick in some places and far apart in others: stretches before the end are looked through, longer
        each time, then halved where one holds far too many. The cost depends on ``count``, not on how many there are.
        """
        whole = until - first + 1
        too_short, too_long, width = 0, 0, min(whole, 1000 * count)
        while True:
            start = self.next_after(until - width)
            found = [] if start is None else [*islice(self.between(start, until), 2 * count + 1)]
            if len(found) > 2 * count:
                too_long = width
            elif len(found) >= count or width == whole:
                return found[-count:]
            else:
                too_short = width
            width = (too_short + too_long) // 2 if too_long else min(4 * width, whole)

    # --- decisions ----------------------------------------------------------------------------------------------------

    def begin(self, after: int, *, before: State | None = None) -> State:
        """A state whose next firing is the first later than ``after``; what else ``before`` knows stays."""
        state = before or State(None)
        return self._moved(state, self.next_after(after) if self.is_open(state) else None, catch_up=0)

    def decide(self, state: State, given: Circumstances) -> Decision:
        """What to do about the nominal time of the state, before it is asked whether its last jobs have ended."""
        nominal = state.nominal
        if nominal is None or not self.definition.enabled or not self.is_open(state):
            return Wait() if nominal is None else Renew(None)
        if self._is_outdated(state) and nominal > self.edited_at:
            return Renew(self.next_after(max(self.edited_at, state.last)))
        if state.act_at > given.now:
            return Wait()
        barred = self._skip_if_barred(state, nominal, given)
        if barred is None and state.catch_up:
            return Fire()
        return barred or self._by_lateness(state, nominal, given)

    def decide_overlap(self, state: State, live: list[str]) -> Decision:
        """What becomes of a firing that would be made, where these of the schedule's last jobs have not ended."""
        nominal = state.nominal or 0
        match self.definition.overlap:
            case "allow":
                return Fire()
            case "skip" if live:
                return Skip(f"the job before has not ended: {live[0]}", nominal, 1, self.successor(state, nominal))
            case "queue_one" if state.held:
                return Skip("another firing waits already", nominal, 1, self.successor(state, nominal))
            case "cancel_old" if state.held:
                return Drop("a later firing took its place")
            case "queue_one" | "cancel_old" if live:
                return Hold()
        return Fire()

    def decide_held(self, state: State, given: Circumstances, live: list[str]) -> Decision:
        """What becomes of a firing that waits for these jobs."""
        if self.stored.paused or given.everything_paused:
            return Drop("the schedule was paused before the job before it had ended")
        return Wait() if live else Fire(held=True)

    def moved(self, state: State, decision: Decision) -> State:
        """The state after the decision was carried out."""
        replace = msgspec.structs.replace
        match decision:
            case Fire(held=True):
                assert state.held is not None
                return replace(self._with_job(state, state.held.job), held=None, error="")
            case Drop():
                return replace(state, held=None)
            case Fire():
                fired = replace(self._with_job(state, state.job), error="")
                return self._past(fired, state)
            case Hold():
                return self._past(replace(state, held=Held(state.nominal or 0, state.job)), state)
            case Skip():
                skipped = replace(state, last=max(state.last, decision.until))
                return self._moved(skipped, decision.next_nominal, catch_up=decision.catch_up, not_before=state.act_at)
            case Renew():
                return self._moved(state, decision.nominal, catch_up=decision.catch_up)
            case Wait():
                return state

    def successor(self, state: State, nominal: int) -> int | None:
        """The nominal time after this one. After an edit the new rhythm begins; it makes nothing up."""
        return self.next_after(max(nominal, self.edited_at) if self._is_outdated(state) else nominal)

    def is_open(self, state: State) -> bool:
        """Whether it may fire at all once more."""
        most = self.definition.max_firings
        return most is None or state.firings + (state.held is not None) < most

    def _is_outdated(self, state: State) -> bool:
        return state.rhythm != self.stored.rhythm

    def _skip_if_barred(self, state: State, nominal: int, given: Circumstances) -> Skip | None:
        """Firings that are never made up: of a pause, of a time that the clock jumped over."""
        jumped_after, jumped_until = given.jump
        if self.stored.paused:
            return self._skip(state, nominal, given.now, "the schedule is paused")
        if given.everything_paused:
            return self._skip(state, nominal, given.now, "the scheduler is paused")
        if (ended := self.stored.pause_over(moment(nominal))) is not None:
            return self._skip(state, nominal, min(given.now, milliseconds_of(ended) - 1), "the schedule was paused")
        if jumped_after < nominal <= jumped_until:
            return self._skip(state, nominal, min(given.now, jumped_until), "the server's clock jumped over it")
        return None

    def _by_lateness(self, state: State, nominal: int, given: Circumstances) -> Decision:
        """In time, missed, or taken in time before and still owed."""
        allowed = int((self.definition.grace_seconds + self.definition.jitter_seconds) * 1000)
        is_owed = given.is_retry and given.now - nominal <= max(allowed, int(OWED_SECONDS * 1000))
        if (given.taken_at if is_owed else given.now) - nominal <= allowed:
            return Fire()
        until = given.now - allowed - 1
        if self.definition.missed == "skip":
            return self._skip(state, nominal, until, "missed: nobody could fire it in time")
        if self._is_outdated(state):  # the new rhythm says nothing about what was due by the old one
            return Renew(nominal, catch_up=1)
        limit = 1 if self.definition.missed == "run_once" else self.definition.missed_limit
        made_up = self.latest(nominal, until, limit)
        if made_up[0] == nominal:
            return Renew(nominal, catch_up=len(made_up))
        only = "the latest is" if limit == 1 else f"the latest {limit:,} are"
        skipped = self._skip(state, nominal, made_up[0] - 1, f"missed: only {only} made up")
        return skipped._replace(next_nominal=made_up[0], catch_up=len(made_up))

    def _skip(self, state: State, first: int, until: int, reason: str) -> Skip:
        if self._is_outdated(state):
            return Skip(reason, first, 1, self.successor(state, first))
        count, last = 0, first
        for nominal in self.between(first, max(first, until)):
            count, last = count + 1, nominal
            if count > COUNTED:
                return Skip(reason, until, None, self.next_after(until))
        return Skip(reason, last, count, self.next_after(last))

    def _with_job(self, state: State, job: str) -> State:
        recent = (job, *state.recent)[:KEPT_JOBS]
        return msgspec.structs.replace(state, firings=state.firings + 1, recent=recent)

    def _past(self, state: State, before: State) -> State:
        """``state`` with the nominal time of ``before`` dealt with."""
        nominal = before.nominal or 0
        done = msgspec.structs.replace(state, last=max(state.last, nominal))
        following = self.successor(before, nominal) if self.is_open(done) else None
        return self._moved(done, following, catch_up=max(0, before.catch_up - 1), not_before=before.act_at)

    def _moved(self, state: State, nominal: int | None, *, catch_up: int, not_before: int = 0) -> State:
        return msgspec.structs.replace(
            state,
            nominal=nominal,
            # One firing after the other, also where a jitter would have the later one first.
            act_at=0 if nominal is None else max(self.act_at(nominal), not_before),
            rhythm=self.stored.rhythm,
            job="",
            catch_up=catch_up,
        )


def milliseconds_of(at: datetime) -> int:
    """Aware datetime → Unix milliseconds, rounded up: nothing is early, and no nominal time comes twice."""
    return -((_EPOCH - at) // _MILLISECOND)
