"""Fires schedules that are due. Every worker host does, at the same time: what fires once is not left to one of them.

A firing goes in steps (see ``jobs.engine.schedules``): it is taken under a claim, its job is made under an id that was
fixed beforehand, and the schedule is moved on while the claim stands. A host that dies between two steps leaves a claim
that lapses, and the next host repeats them. What is to be done is decided by ``jobs.core.schedule.plan``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic

import msgspec

from jobs.core.clock import uptime
from jobs.core.job import JobSpec, moment
from jobs.core.schedule.plan import Circumstances, Decision, Drop, Fire, Hold, Plan, Renew, Skip, State, Stretch, Wait
from jobs.engine import Engine, new_token
from jobs.engine.schedules import BATCH, FIRE_MS, JUMP_MS, Firing, Record, Step, Taken, TakeReply
from jobs.exceptions import OutcomeUnknown, PoolFull, ScheduleInvalid, SchedulerError, StoreUnavailable
from jobs.services.definitions import Definitions
from jobs.services.firing import live, planned_job, request, stop

log = logging.getLogger("jobs.schedules")

LOOK_SECONDS = 2.0
"""The next due time is known, and changed by others: so often it is asked for again."""
IDLE_SECONDS = 20.0
"""The same where there is no schedule at all; the definitions' keeper tells its own ticker of the first one."""
HELD_MS = 250
"""So often it is asked whether the job has ended for which a firing waits."""
FULL_MS = 1_000
"""After a firing found its pool full, it is tried again, until it is later than its grace allows."""
BROKEN_MS = 60_000
"""After what is stored of a schedule could not be read."""
ROUNDS = 50
"""In one tick; more is for the next, so that a host that is to stop does."""


Through = Callable[[JobSpec, bytes, str], tuple[JobSpec, bytes]]
"""What each job passes before it is made, with the id that it will have: the project's enqueue middleware."""


@dataclass
class Case:
    """One schedule in one round: what was found, and what became of it."""

    taken: Taken
    plan: Plan
    state: State
    decision: Decision = field(default_factory=Wait)
    live: list[str] = field(default_factory=list)
    firing: Firing | None = None
    problem: SchedulerError | None = None
    is_full: bool = False
    is_lost: bool = False
    """Our claim has lapsed, or lapses: whoever takes it next goes on."""

    @property
    def name(self) -> str:
        return self.taken.name

    @property
    def nominal(self) -> int:
        """The one that is dealt with: of the firing that waited, if that is to be made or dropped."""
        if isinstance(self.decision, Drop) or (isinstance(self.decision, Fire) and self.decision.held):
            return self.state.held.nominal if self.state.held else 0
        return self.state.nominal or 0


class Ticker:
    """The service of a worker host (``jobs.runtime.service``)."""

    name = "ticker"

    def __init__(
        self,
        engine: Engine,
        definitions: Definitions | None = None,
        *,
        through: Through | None = None,
        elapsed: Callable[[], float] = uptime,
    ) -> None:
        self._engine = engine
        self._through = through
        self._definitions = definitions
        self._elapsed = elapsed
        self._sequence = 0
        self._last: tuple[int, float] | None = None  # server time of the last call, and ours before it
        self._wait = 0.0

    @property
    def every(self) -> float:
        return self._wait

    def tick(self) -> dict[str, int]:
        """Everything that is due. Raises StoreUnavailable; the rest of what it took is then repeated by somebody."""
        done = {"fired": 0, "skipped": 0}
        if self._definitions is not None and not self._definitions.is_checked:
            self._wait = 0.05
            return done
        for _ in range(ROUNDS):
            token = new_token()
            began = monotonic()
            reply = self._take(token)
            if reply.is_behind:
                self._on_behind()
                return done
            self._wait = self._until(reply.now, reply.next_at, self._settle(token, reply, began, done))
            if len(reply.items) < BATCH and self._wait > 0:
                break
        return done

    def _take(self, token: str) -> TakeReply:
        called_at = self._elapsed()
        reply = self._engine.schedules.take(token, known_sequence=self._sequence)
        self._sequence = max(self._sequence, reply.sequence)
        if self._last is not None and (jump := self._jump(reply, *self._last)) is not None:
            log.warning("The server's clock jumped ahead by %.0f s", (jump[1] - jump[0]) / 1000)
            self._engine.schedules.tell_jump(jump)
            reply = reply._replace(jump=jump)
        self._last = (reply.now, called_at)
        return reply

    def _jump(self, reply: TakeReply, last_now: int, last_called_at: float) -> tuple[int, int] | None:
        """What the server's clock jumped over since the last call. At most as long as since before that has passed."""
        jumped_after = last_now + int((self._elapsed() - last_called_at) * 1000)
        if reply.now - jumped_after <= JUMP_MS:
            return None
        told_after, told_until = reply.jump
        return (min(jumped_after, told_after) if told_until >= jumped_after else jumped_after, reply.now)

    def _on_behind(self) -> None:
        """The store was emptied or put back: the definitions are compared with the database before anything fires."""
        log.warning("The store of the schedules has gone back in time: they are compared with the database")
        self._sequence = 0
        self._wait = 0.05
        if self._definitions is not None:
            self._definitions.check_again()

    @staticmethod
    def _until(now: int, *next_at: int | None) -> float:
        """Seconds to sleep."""
        known = [at for at in next_at if at is not None]
        return max(0.0, min((min(known) - now) / 1000, LOOK_SECONDS)) if known else IDLE_SECONDS

    # --- one round --------------------------------------------------------------------------------------------------

    def _settle(self, token: str, reply: TakeReply, began: float, done: dict[str, int]) -> int | None:
        """Deals with what was taken; when the first of it is to be looked at again."""
        if not reply.items:
            return None
        everything_paused = self._engine.pauses.state().everything is not None
        cases, broken = self._cases(reply)
        for case in cases:
            self._decide(case, reply, everything_paused)
        self._ask_overlap(cases)
        self._prepare(token, cases, reply.now)
        self._fire(cases, reply.now + FIRE_MS, began)
        cases = [case for case in cases if not case.is_lost]
        steps = [self._step(case, reply.now) for case in cases]
        answers = self._engine.schedules.advance(token, [*broken, *steps], at=reply.now)[len(broken) :]
        for case, step, moved in zip(cases, steps, answers, strict=True):
            if moved:
                self._count(case, step, done)
        return min((step.look_at for step in (*broken, *steps) if isinstance(step.look_at, int)), default=None)

    def _cases(self, reply: TakeReply) -> tuple[list[Case], list[Step]]:
        """What can be decided, and what becomes of schedules that cannot be read: one bad one stops only itself."""
        cases, broken = [], []
        for taken in reply.items:
            state = taken.state or State(None)
            try:
                if taken.kept is None:
                    raise ScheduleInvalid("What is stored of the schedule cannot be read.")
                plan = Plan(taken.kept.stored, edited_at=taken.kept.edited_at)
            except SchedulerError as error:
                state = msgspec.structs.replace(state, error=str(error))
                broken.append(Step(taken, state, reply.now + BROKEN_MS))
                self._note(taken.name, state)
            else:
                cases.append(Case(taken, plan, state))
        return cases, broken

    def _decide(self, case: Case, reply: TakeReply, everything_paused: bool) -> None:
        given = self._given(case, reply, everything_paused)
        if case.state.held is not None:
            case.live = self._live(case)
            case.decision = case.plan.decide_held(case.state, given, case.live)
        if isinstance(case.decision, Wait):
            case.decision = case.plan.decide(case.state, given)

    @staticmethod
    def _given(case: Case, reply: TakeReply, everything_paused: bool) -> Circumstances:
        return Circumstances(
            now=reply.now,
            taken_at=case.taken.first_at,
            is_retry=case.taken.number > 1,
            everything_paused=everything_paused,
            jump=reply.jump,
        )

    def _ask_overlap(self, cases: Iterable[Case]) -> None:
        for case in cases:
            if case.decision != Fire() or case.plan.definition.overlap == "allow" or self._was_made(case):
                continue
            case.live = self._live(case)
            if case.live and case.plan.definition.overlap == "cancel_old":
                case.live = [job for job in case.live if not stop(self._engine, case.plan.definition, job)]
            case.decision = case.plan.decide_overlap(case.state, case.live)

    def _was_made(self, case: Case) -> bool:
        """Whether another has made the job already, and did not come to say so."""
        return case.taken.number > 1 and bool(case.state.job) and self._engine.jobs.find(case.state.job) is not None

    def _live(self, case: Case) -> list[str]:
        """Its last jobs, as far as they have not ended."""
        return live(self._engine, case.plan.definition, case.state.recent)

    def _prepare(self, token: str, cases: Iterable[Case], now: int) -> None:
        """Makes the requests; where it is not the job that was planned, the new plan is written down first."""
        changed = []
        for case in cases:
            if not isinstance(case.decision, Fire | Hold):
                continue
            try:
                spec, payload = request(self._engine, case.plan.definition)
                spec = msgspec.structs.replace(spec, fire_time_ms=case.nominal)
                job_id = self._job_of(case)
                if self._through is not None:
                    spec, payload = self._through(spec, payload, job_id)
            except (StoreUnavailable, OutcomeUnknown):
                raise
            except SchedulerError as error:
                case.problem = error
                continue
            case.firing = Firing(job_id, spec, payload)
            if job_id not in (case.state.job, case.state.held.job if case.state.held else None):
                case.state = msgspec.structs.replace(case.state, job=job_id)
                changed.append(case)
        steps = [Step(case.taken, case.state, "") for case in changed]
        for case, written in zip(changed, self._engine.schedules.advance(token, steps, at=now), strict=True):
            case.taken = case.taken._replace(raw_state=self._engine.schedules.raw(case.state))
            case.is_lost = not written

    def _job_of(self, case: Case) -> str:
        if isinstance(case.decision, Fire) and case.decision.held and case.state.held:
            return case.state.held.job
        if case.state.job and case.taken.number > 1:
            return case.state.job  # it may exist, where it was planned to be
        return planned_job(self._engine, case.plan.definition, case.state.nominal)

    def _fire(self, cases: Iterable[Case], not_after: int, began: float) -> None:
        firing = [case for case in cases if case.firing and isinstance(case.decision, Fire) and not case.is_lost]
        plain = [case for case in firing if case.firing and case.firing.spec.unique is None]
        answers = self._engine.schedules.fire((case.firing for case in plain if case.firing), not_after=not_after)
        for case in firing:
            assert case.firing is not None
            answer = answers.get(case.firing.id) or self._fire_unique(case, case.firing, began)
            if answer == "late":
                case.is_lost = True
            elif answer == "full":
                case.is_full = True
            elif answer == "there" and not self._is_ours(case, case.firing):
                case.problem = SchedulerError(f"Another job has the id {case.firing.id}.")

    def _fire_unique(self, case: Case, firing: Firing, began: float) -> str:
        """The job of a type whose jobs are unique: the engine claims its key first."""
        if self._engine.jobs.find(firing.id) is not None:
            return "there"
        if monotonic() - began > FIRE_MS / 1000:
            return "late"
        try:
            [made] = self._engine.jobs.enqueue(firing.spec, [firing.payload], ids=[firing.id])
        except (StoreUnavailable, OutcomeUnknown):
            raise
        except PoolFull:
            case.is_full = True
        except SchedulerError as error:
            case.problem = error
        else:
            if made.existing:
                case.problem = SchedulerError(f"Job {made.id} has the unique key.")
        return ""

    def _is_ours(self, case: Case, firing: Firing) -> bool:
        job = self._engine.jobs.find(firing.id)
        return job is None or (job.schedule == case.name and job.fire_time == moment(case.nominal))

    # --- what is written down ----------------------------------------------------------------------------------------

    def _step(self, case: Case, now: int) -> Step:
        decision, plan = case.decision, case.plan
        if case.is_full:
            return Step(case.taken, case.state, now + FULL_MS)
        if case.problem is not None:
            decision = self._refused(case, case.problem)
        state = plan.moved(case.state, decision)
        if case.problem is not None:
            state = msgspec.structs.replace(state, error=str(case.problem))
        if not state.job and state.nominal is not None:
            state = msgspec.structs.replace(state, job=planned_job(self._engine, plan.definition, state.nominal))
        return self._recorded(Step(case.taken, state, self._look_at(state, now), self._record(case, decision, now)))

    @staticmethod
    def _recorded(step: Step) -> Step:
        """Firings that are skipped one after the other for one reason, as those of a pause are, share a record."""
        record, before = step.record, step.state.stretch
        if record is None:
            return step
        if record.outcome != "skipped" or record.count is None:
            return step._replace(state=msgspec.structs.replace(step.state, stretch=None))
        replaces = None
        if before is not None and before.reason == record.reason and before.until < record.due:
            replaces, count = _record_of(before), before.count + record.count
            record = msgspec.structs.replace(record, due=before.due, until=record.until or record.due, count=count)
        stretch = Stretch(record.due, record.until or record.due, record.count or 1, record.at, record.reason)
        return step._replace(
            state=msgspec.structs.replace(step.state, stretch=stretch), record=record, replaces=replaces
        )

    @staticmethod
    def _refused(case: Case, problem: SchedulerError) -> Decision:
        """A firing that can be no job is skipped, and says why."""
        if isinstance(case.decision, Fire) and case.decision.held:
            return Drop(str(problem))
        nominal = case.state.nominal or 0
        return Skip(str(problem), nominal, 1, case.plan.successor(case.state, nominal))

    @staticmethod
    def _look_at(state: State, now: int) -> int | None:
        if state.held is not None:
            return now + HELD_MS if state.nominal is None else min(now + HELD_MS, state.act_at)
        return None if state.nominal is None else state.act_at

    def _record(self, case: Case, decision: Decision, now: int) -> Record | None:
        match decision:
            case Fire():
                assert case.firing is not None
                return Record(due=case.nominal, at=now, outcome="fired", job=case.firing.id)
            case Skip(reason=reason, until=until, number=count):
                several = None if count == 1 else until
                return Record(due=case.nominal, at=now, outcome="skipped", reason=reason, until=several, count=count)
            case Drop(reason=reason):
                due = case.state.held.nominal if case.state.held else 0
                return Record(due=due, at=now, outcome="skipped", reason=reason)
            case Hold() | Renew() | Wait():
                return None

    def _count(self, case: Case, step: Step, done: dict[str, int]) -> None:
        if step.record is not None:
            earlier = step.replaces.count or 1 if step.replaces else 0
            done[step.record.outcome] += (step.record.count or 1) - earlier
            self._note(case.name, step.state)

    def _note(self, name: str, state: State) -> None:
        """For the database, which learns of it a little later."""
        if self._definitions is not None:
            self._definitions.note(name, state)


def _record_of(stretch: Stretch) -> Record:
    """As it was written."""
    several = stretch.until if stretch.count > 1 else None
    return Record(
        due=stretch.due,
        at=stretch.at,
        outcome="skipped",
        reason=stretch.reason,
        until=several,
        count=stretch.count,
    )
