"""Searches the histories and the final state of a run for everything that the guarantees forbid.

``check`` returns a ``Report`` with three separate lists: *violations* (must be empty), *allowed losses* (acknowledged
at a level that a fault of the run does not cover) and *duplicates* (jobs that ran more often than they had to, which
at-least-once permits and which is published). A run in which no fault took effect, nothing had to be recovered or
nothing stale was refused proves nothing, and is reported as a violation too.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

import msgspec

from tests.faults.history import Event, describe
from tests.faults.linear import Operation, explains

TERMINAL = frozenset({"succeeded", "dead", "cancelled"})
ENDINGS = frozenset({"complete", "fail", "release", "crash", "park"})
CLOCK_SLACK_MS = 3
"""Times are kept in whole milliseconds: two of them may round towards each other, and a start is one step later."""


class FinalJob(msgspec.Struct, kw_only=True, frozen=True):
    """A job as it was read at the end of the run."""

    id: str
    state: str
    attempt: int = 0
    crashes: int = 0
    max_retries: int = 3
    max_crashes: int = 3
    failures: int = 0  # attempts that ended in an error, in this life of the job
    resubmissions: int = 0


@dataclass(frozen=True)
class Violation:
    """One broken promise: which check, which job or process, and the facts."""

    check: str
    subject: str
    facts: str

    def __str__(self) -> str:
        return f"{self.check} {self.subject}: {self.facts}"


@dataclass(frozen=True)
class Expectations:
    """What this run must have met, and the bounds that hold in it."""

    faults: Sequence[str] = ()  # each must have taken effect at least once
    recoveries: int = 0  # at least so many jobs went on after their lease was lost
    zombies: int = 0  # at least so many handlers went on beside their successor
    recovery_seconds: float = 15.0  # K17: from the end of a fault to the next claim
    slots: Mapping[str, int] = field(default_factory=dict)  # pool → most handlers at once in a process
    at_once: Mapping[str, int] = field(default_factory=dict)  # limit → most handlers at once anywhere


@dataclass
class Report:
    violations: list[Violation] = field(default_factory=list)
    allowed_losses: list[str] = field(default_factory=list)
    duplicates: dict[str, int] = field(default_factory=dict)  # job → executions beyond its first and its retries
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        lines = [
            f"{len(self.violations)} violations, {len(self.allowed_losses)} allowed losses, "
            f"{len(self.duplicates)} jobs ran more than once"
        ]
        lines += [f"  {name:<28} {value:,.10g}" for name, value in sorted(self.numbers.items())]
        counted = Counter(violation.check for violation in self.violations)
        lines += [f"  {check}: {count}" for check, count in sorted(counted.items())]
        lines += [f"  {violation}" for violation in self.violations[:20]]
        return "\n".join(lines)


@dataclass
class Action:
    """An invocation with its outcome, if one was written."""

    invoke: Event
    outcome: Event | None = None

    @property
    def name(self) -> str:
        return self.invoke.event

    @property
    def phase(self) -> str:
        return self.outcome.phase if self.outcome else "unknown"

    @property
    def invoked(self) -> int:
        return self.invoke.mono_ns

    @property
    def answered(self) -> float:
        return self.outcome.mono_ns if self.outcome and self.outcome.phase != "unknown" else inf

    @property
    def answer(self) -> str:
        return (self.outcome.outcome or "") if self.outcome else ""


@dataclass
class Claim:
    """A lease as its holder saw it. ``deadline_ms`` is server time and moves with each renewal."""

    action: Action
    job: str
    token: str
    fence: int
    granted_ms: int
    deadline_ms: int


class Histories:
    """The events of a run, grouped the ways that the checks need them."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.events = list(events)
        self.actions = _pair(self.events)
        self.by_name: defaultdict[str, list[Action]] = defaultdict(list)
        self.by_job: defaultdict[str, list[Action]] = defaultdict(list)
        for action in self.actions:
            self.by_name[action.name].append(action)
            for job in _jobs_of(action):
                self.by_job[job].append(action)
        self.acknowledged_ids = frozenset(self.acknowledged())
        self.unheard_claims = [action for action in self.by_name["claim"] if action.phase == "unknown"]
        self.claims = self._claims()

    def acknowledged(self) -> dict[str, Action]:
        """Job → the enqueue that was acknowledged."""
        return {
            action.outcome.job: action
            for action in self.by_name["enqueue"]
            if action.phase == "ok" and action.outcome and action.outcome.job
        }

    def runs(self) -> Iterator[tuple[str, Action]]:
        """Each execution of a handler: its ``invoke`` is the start, its outcome the end."""
        for action in self.by_name["run"]:
            assert action.invoke.job is not None
            yield action.invoke.job, action

    def _claims(self) -> defaultdict[str, list[Claim]]:
        """Job → its leases in the order in which the server gave them."""
        claims: defaultdict[str, list[Claim]] = defaultdict(list)
        by_lease: dict[tuple[str, str], Claim] = {}
        for action in self.by_name["claim"]:
            outcome = action.outcome
            if outcome is None or outcome.phase != "ok" or outcome.server_ms is None:
                continue
            for job, fence in outcome.facts.get("fences", {}).items():
                token = action.invoke.token or ""
                if (job, token) in by_lease:  # the same request, answered again
                    continue
                deadline = outcome.server_ms + (action.invoke.lease_ms or 0)
                claim = Claim(action, job, token, fence, outcome.server_ms, deadline)
                by_lease[job, token] = claim
                claims[job].append(claim)
        for action in self.by_name["renew"]:
            outcome = action.outcome
            if outcome is None or outcome.phase != "ok" or outcome.server_ms is None:
                continue
            refused = set(outcome.facts.get("lost", ())) | set(outcome.facts.get("ended", ()))
            for job, token in action.invoke.facts.get("leases", ()):
                held = by_lease.get((job, token))
                if held and job not in refused:
                    held.deadline_ms = max(held.deadline_ms, outcome.server_ms + (action.invoke.lease_ms or 0))
        for leases in claims.values():
            leases.sort(key=lambda claim: (claim.granted_ms, claim.action.invoked))
        return claims


def check(events: Iterable[Event], final: Mapping[str, FinalJob], expected: Expectations) -> Report:
    """All checks over one run. ``final`` holds each job that exists at the end, by id."""
    histories = Histories(events)
    report = Report()
    for check_one in CHECKS:
        report.violations.extend(check_one(histories, final, expected))
    executions = Counter(job for job, _ in histories.runs())
    report.duplicates = {
        job: extra for job, count in executions.items() if (extra := count - _wanted_runs(histories, job)) > 0
    }
    report.numbers = _numbers(histories, final, executions)
    return report


# The checks, in the order of their numbers.

Check = Callable[[Histories, Mapping[str, FinalJob], Expectations], Iterator[Violation]]


def every_acknowledged_job_ended(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K1: nothing that was acknowledged is missing, and everything reached a terminal state."""
    for job, action in histories.acknowledged().items():
        if job not in final:
            yield Violation("K1", job, f"acknowledged and gone: {describe(action.invoke)}")
        elif final[job].state not in TERMINAL:
            yield Violation("K1", job, f"still {final[job].state} after the drain")


def nothing_ran_unasked(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K2: what ran was asked for, and one wish made at most one job."""
    wished = {action.invoke.key for action in histories.by_name["enqueue"]}
    made: defaultdict[str, set[str]] = defaultdict(set)
    for job, run in histories.runs():
        if run.invoke.key not in wished:
            yield Violation("K2", job, "ran, but no producer asked for it")
        elif run.invoke.key:
            made[run.invoke.key].add(job)
    for job, action in histories.acknowledged().items():
        if action.invoke.key:
            made[action.invoke.key].add(job)
    for key, jobs in made.items():
        if len(jobs) > 1:
            yield Violation("K2", key, f"one enqueue made {len(jobs)} jobs: {sorted(jobs)}")


def each_history_is_a_life(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K3: the operations on each job fit in some order into the automaton of its states."""
    for job, actions in histories.by_job.items():
        if job not in histories.acknowledged_ids:
            continue
        operations = [operation for action in actions for operation in _operations(action, job)]
        end = final[job].state if job in final else None
        if not explains(operations, end):
            told = "; ".join(f"{op.name}→{op.answer or '?'}" for op in sorted(operations, key=lambda op: op.invoked))
            yield Violation("K3", job, f"no order of its operations is possible, ends {end}: {told}")


def only_the_latest_lease_was_heard(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K4: nothing was accepted from a lease after a later one had been granted; fences grow with each lease."""
    for job, claims in histories.claims.items():
        for earlier, later in pairwise(claims):
            if later.fence <= earlier.fence and later.granted_ms > earlier.granted_ms:
                yield Violation("K4", job, f"fence {later.fence} was given after fence {earlier.fence}")
        accepted: set[str] = set()
        for action in histories.by_job[job]:
            token = _token_for(action, job)
            if action.name not in {"complete", "fail"} or _answer_for(action, job) in {"", "lost", "refused"}:
                continue
            accepted.add(token)
            for claim in claims:
                newer = claim.token != token and claim.fence > _fence_of(claims, token)
                if newer and claim.action.answered < action.invoked:
                    yield Violation("K4", job, f"{action.name} of lease {token} accepted after lease {claim.token}")
        lives = 1 + (final[job].resubmissions if job in final else 0)
        ended = {
            _token_for(action, job)
            for action in histories.by_job[job]
            if action.name == "complete" and _answer_for(action, job) == "ok"
        }
        if len(ended) > lives:
            yield Violation("K4", job, f"completed under {len(ended)} different leases")


def leases_do_not_overlap(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K5: a lease begins after the one before it was given back or ran out by the server's clock."""
    for job, claims in histories.claims.items():
        for earlier, later in pairwise(claims):
            if not _is_over(histories, job, earlier, later):
                left = earlier.deadline_ms - later.granted_ms
                yield Violation("K5", job, f"leased again while the lease before it had {left} ms to go")


def runs_do_not_overlap(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K6: no handler starts while another runs the same job under a lease that still holds."""
    runs: defaultdict[str, list[Action]] = defaultdict(list)
    for job, run in histories.runs():
        runs[job].append(run)
    for job, several in runs.items():
        several.sort(key=lambda run: run.invoked)
        for earlier, later in pairwise(several):
            if later.invoke.fence == earlier.invoke.fence:
                yield Violation("K6", job, f"ran twice under one lease, fence {later.invoke.fence}")
            elif later.invoked < earlier.answered:
                older = _claim_of(histories, job, earlier)
                newer = _claim_of(histories, job, later)
                if older and newer and not _is_over(histories, job, older, newer):
                    yield Violation("K6", job, f"attempt {later.invoke.attempt} began while the one before it held on")


def budgets_are_kept(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K7: attempts are the leases that were not handed back; errors and crashes stay within their own limits."""
    for job, end in final.items():
        if end.resubmissions or job not in histories.acknowledged_ids:
            continue
        claims = histories.claims.get(job, [])
        unheard = sum(1 for action in histories.unheard_claims if action.invoke.pool == _pool_of(claims))
        returned = {
            _token_for(action, job)
            for action in histories.by_job[job]
            if action.name in {"release", "park"}
            and not action.invoke.facts.get("charged")
            and _answer_for(action, job) in {"ready", "cancelled"}
        }
        most = len(claims) - len(returned & {claim.token for claim in claims}) + unheard
        if end.attempt > most:
            yield Violation("K7", job, f"{end.attempt} attempts, but only {most} leases were kept")
        started = max((run.invoke.attempt or 0 for run in histories.by_job[job] if run.name == "run"), default=0)
        if end.attempt < started:
            yield Violation("K7", job, f"{end.attempt} attempts, but a handler ran as attempt {started}")
        if end.failures > end.max_retries + 1:
            yield Violation("K7", job, f"failed {end.failures} times with {end.max_retries} retries")
        if end.crashes > end.max_crashes:
            yield Violation("K7", job, f"crashed {end.crashes} times with a budget of {end.max_crashes}")
        spent = end.failures > end.max_retries or end.crashes >= end.max_crashes
        if end.state == "dead" and not spent and not _asked_to_die(histories, job):
            yield Violation("K7", job, f"dead after {end.failures} errors and {end.crashes} crashes")


def nothing_starts_early(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K8: no handler starts before the job is due, first or again."""
    due = {job: action.invoke.due_ns for job, action in histories.acknowledged().items() if action.invoke.due_ns}
    slack = CLOCK_SLACK_MS * 1_000_000
    for job, run in histories.runs():
        if run.invoked + slack < due.get(job, 0):
            early = (due[job] - run.invoked) / 1e6
            yield Violation("K8", job, f"started {early:.1f} ms before it was due")
        for action in histories.by_job[job]:
            if action.name == "fail" and action.answered < run.invoked:
                waits = action.invoke.facts.get("delays", {}).get(job)
                if waits and _answer_for(action, job) in {"retry_wait", "scheduled"}:
                    early = action.invoked / 1e6 + waits - run.invoked / 1e6
                    if early > CLOCK_SLACK_MS:
                        yield Violation("K8", job, f"tried again {early:.1f} ms before its backoff was over")


def slots_bound_what_runs(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K11: no process runs more handlers of a pool at once than it has slots."""
    edges: defaultdict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for _, run in histories.runs():
        where = (run.invoke.process, run.invoke.pool or "")
        edges[where].append((run.invoked, 1))
        edges[where].append((run.outcome.mono_ns if run.outcome else inf, -1))
    for (process, pool), changes in edges.items():
        if pool not in expected.slots:
            continue
        running = most = 0
        for _, change in sorted(changes):
            running += change
            most = max(most, running)
        if most > expected.slots[pool]:
            yield Violation("K11", process, f"{most} handlers of pool {pool} at once, {expected.slots[pool]} slots")


def limits_bound_what_runs(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K19: nowhere do more handlers run under one limit than it allows, each from its first step under its lease to its
    last one."""
    spans: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for action in histories.by_name["step"]:
        facts = action.invoke.facts
        for limit in facts["limits"]:
            spans[limit][facts["run"]].append(facts["at_ns"])
    for limit, allowed in expected.at_once.items():
        if not spans[limit]:
            yield Violation("K19", limit, "nothing ran under it")
        most = _most_at_once((min(moments), max(moments)) for moments in spans[limit].values())
        if most > allowed:
            yield Violation("K19", limit, f"{most} handlers at once, {allowed} allowed")


def _most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """How many of the spans (start, end) cover one moment."""
    edges = sorted(edge for start, end in spans for edge in ((start, 1), (end + 1, -1)))
    return max(itertools.accumulate(change for _, change in edges), default=0)


def a_pause_holds(histories: Histories, final: Mapping[str, FinalJob], expected: Expectations) -> Iterator[Violation]:
    """K12: no lease is granted between an acknowledged pause and the next resume."""
    for pause in histories.by_name["pause"]:
        if pause.phase != "ok":
            continue
        pool = pause.invoke.pool
        resumed = min(
            (
                resume.invoked
                for resume in histories.by_name["resume"]
                if resume.invoke.pool == pool and resume.invoked > pause.answered
            ),
            default=inf,
        )
        for claim in histories.by_name["claim"]:
            if claim.invoke.pool == pool and pause.answered < claim.invoked and claim.answered < resumed:
                granted = claim.outcome.facts.get("fences", {}) if claim.outcome else {}
                if granted:
                    yield Violation("K12", str(pool), f"{len(granted)} jobs leased during a pause")


def a_cancelled_job_never_starts(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K14: what was cancelled while it waited never runs."""
    for action in histories.by_name["cancel"]:
        if action.phase == "ok" and action.answer == "cancelled" and action.invoke.job:
            for run in histories.by_job[action.invoke.job]:
                if run.name == "run" and run.invoked > action.answered:
                    yield Violation("K14", action.invoke.job, "started after its cancellation was acknowledged")


def it_came_back(histories: Histories, final: Mapping[str, FinalJob], expected: Expectations) -> Iterator[Violation]:
    """K17: after each fault the workers lease again within the bound, as long as there is something to lease."""
    claims = sorted(action.answered for action in histories.by_name["claim"] if _granted(action))
    if not claims:
        return
    for _, seconds in _pauses_after_faults(histories, claims):
        if seconds > expected.recovery_seconds:
            yield Violation("K17", "workers", f"no lease for {seconds:.1f} s after a fault had ended")


def done_means_run(histories: Histories, final: Mapping[str, FinalJob], expected: Expectations) -> Iterator[Violation]:
    """K18: a job that succeeded was run by a handler to its end at least once."""
    finished = {job for job, run in histories.runs() if run.answer == "returned"}
    for job, end in final.items():
        if end.state == "succeeded" and job in histories.acknowledged_ids and job not in finished:
            yield Violation("K18", job, "succeeded, but no handler ever returned")


def the_run_was_hard_enough(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """A run that met no fault, recovered nothing or woke no zombie has not tested anything.

    Whether a zombie is refused or holds its tongue, since its own clock told it, is a matter of milliseconds; that
    nothing it says is heard is K4.
    """
    taken = Counter(action.invoke.fault for action in histories.by_name["fault"] if action.phase == "ok")
    for fault in expected.faults:
        if not taken[fault]:
            yield Violation("run", fault, "the fault never took effect")
    if (recoveries := _recoveries(histories)) < expected.recoveries:
        yield Violation(
            "run", "recoveries", f"{recoveries} jobs went on after a lost lease, {expected.recoveries} wanted"
        )
    if (zombies := len(list(_overlaps(histories)))) < expected.zombies:
        yield Violation("run", "zombies", f"{zombies} handlers ran beside their successor, {expected.zombies} wanted")


CHECKS: tuple[Check, ...] = (
    every_acknowledged_job_ended,
    nothing_ran_unasked,
    each_history_is_a_life,
    only_the_latest_lease_was_heard,
    leases_do_not_overlap,
    runs_do_not_overlap,
    budgets_are_kept,
    nothing_starts_early,
    slots_bound_what_runs,
    limits_bound_what_runs,
    a_pause_holds,
    a_cancelled_job_never_starts,
    it_came_back,
    done_means_run,
    the_run_was_hard_enough,
)


# What the checks ask of the histories.


def _pair(events: Sequence[Event]) -> list[Action]:
    """Invocations with their outcomes, in the order of the invocations."""
    actions: dict[str, Action] = {}
    for event in events:
        if event.phase == "invoke":
            actions[event.op] = Action(event)
        elif event.op in actions:
            actions[event.op].outcome = event
    return list(actions.values())


def _jobs_of(action: Action) -> set[str]:
    """The jobs that an action was about, as far as anybody knows."""
    jobs = set(action.invoke.facts.get("tokens", ()))
    if action.invoke.job:
        jobs.add(action.invoke.job)
    if action.outcome:
        jobs.update(action.outcome.facts.get("fences", ()))
        if action.outcome.job:
            jobs.add(action.outcome.job)
    return jobs


def _token_for(action: Action, job: str) -> str:
    return str(action.invoke.facts.get("tokens", {}).get(job, action.invoke.token or ""))


def _answer_for(action: Action, job: str) -> str:
    """What the server said of this job; "" where nobody heard."""
    if action.outcome is None or action.outcome.phase == "unknown":
        return ""
    return str(action.outcome.facts.get("answers", {}).get(job, action.answer))


def _fence_of(claims: Sequence[Claim], token: str) -> float:
    """The fence of a lease; one whose grant nobody heard of counts as the newest."""
    return next((claim.fence for claim in claims if claim.token == token), inf)


def _granted(action: Action) -> bool:
    return bool(action.outcome and action.outcome.facts.get("fences"))


def _pool_of(claims: Sequence[Claim]) -> str | None:
    return claims[0].action.invoke.pool if claims else None


def _given_back(histories: Histories, job: str, earlier: Claim, later: Claim) -> bool:
    """Whether the earlier lease's holder had sent its end before the later lease was granted.

    Even "lost" counts: the store sends a message again whose answer was lost, and hears that it is over.
    """
    return any(
        action.name in ENDINGS and _token_for(action, job) == earlier.token and action.invoked <= later.action.answered
        for action in histories.by_job[job]
    )


def _is_over(histories: Histories, job: str, earlier: Claim, later: Claim) -> bool:
    """Whether the earlier lease had run out by the server's clock, or was given back, when the later was granted."""
    ran_out = later.granted_ms + CLOCK_SLACK_MS >= earlier.deadline_ms
    return ran_out or _given_back(histories, job, earlier, later)


def _claim_of(histories: Histories, job: str, run: Action) -> Claim | None:
    """The lease under which a handler ran, if its grant was heard of."""
    return next((claim for claim in histories.claims[job] if claim.fence == run.invoke.fence), None)


def _asked_to_die(histories: Histories, job: str) -> bool:
    return any(run.name == "run" and run.answer == "raised Dead" for run in histories.by_job[job])


def _operations(action: Action, job: str) -> Iterator[Operation]:
    """An action as an operation of the automaton on one job; nothing if it is not about states."""
    token = _token_for(action, job)
    match action.name:
        case "enqueue" | "claim" | "resubmit" | "cancel":
            answer = {"refused": "refused", "unknown": ""}.get(action.phase, action.answer)
        case "complete" | "fail" | "release" | "crash" | "park":
            answer = _answer_for(action, job)
        case _:
            return
    yield Operation(action.name, action.invoked, action.answered, token, answer)


def _recoveries(histories: Histories) -> int:
    """Jobs that were leased again after a lease that nobody gave back, or whose worker was seen to die."""
    recovered = {
        job
        for job, claims in histories.claims.items()
        for earlier, later in pairwise(claims)
        if not _given_back(histories, job, earlier, later)
    }
    crashed = {
        job
        for action in histories.by_name["crash"]
        for job in action.invoke.facts.get("tokens", ())
        if _answer_for(action, job) in {"ready", "dead"}
    }
    return len(recovered | crashed)


def _refusals(histories: Histories) -> int:
    """Messages of stale leases that were turned away."""
    endings = sum(
        _answer_for(action, job) == "lost"
        for name in sorted(ENDINGS)
        for action in histories.by_name[name]
        for job in action.invoke.facts.get("tokens", ())
    )
    sent = {
        (job, token)
        for name in sorted(ENDINGS)
        for action in histories.by_name[name]
        for job, token in action.invoke.facts.get("tokens", {}).items()
    }
    renewals = {
        (job, token)
        for action in histories.by_name["renew"]
        if action.outcome
        for job, token in action.invoke.facts.get("leases", ())
        if job in action.outcome.facts.get("lost", ()) and (job, token) not in sent
    }
    return endings + len(renewals)


def _wanted_runs(histories: Histories, job: str) -> int:
    """The first run, and one for each failure that was followed by a retry."""
    return 1 + sum(
        action.name == "fail" and _answer_for(action, job) in {"retry_wait", "scheduled"}
        for action in histories.by_job[job]
    )


def _pauses_after_faults(histories: Histories, claims: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Fault → seconds from its end to the next lease, for those after which there was one."""
    for fault in histories.by_name["fault"]:
        if fault.phase == "ok" and fault.answered < claims[-1]:
            following = claims[bisect_right(claims, fault.answered)]
            yield fault.invoke.fault or "", (following - fault.answered) / 1e9


def _overlaps(histories: Histories) -> Iterator[float]:
    """Seconds in which a handler whose lease was lost still ran beside its successor: zombie time."""
    runs: defaultdict[str, list[Action]] = defaultdict(list)
    for job, run in histories.runs():
        runs[job].append(run)
    for several in runs.values():
        several.sort(key=lambda run: run.invoked)
        for earlier, later in pairwise(several):
            if earlier.outcome and earlier.answered > later.invoked:
                yield (earlier.answered - later.invoked) / 1e9


def _numbers(histories: Histories, final: Mapping[str, FinalJob], executions: Mapping[str, int]) -> dict[str, float]:
    """The figures of the run that are published with it."""
    numbers: dict[str, float] = {
        "jobs acknowledged": len(histories.acknowledged_ids),
        "enqueues unknown": sum(action.phase == "unknown" for action in histories.by_name["enqueue"]),
        "executions": sum(executions.values()),
        "leases": sum(len(claims) for claims in histories.claims.values()),
        "recoveries": _recoveries(histories),
        "stale messages refused": _refusals(histories),
    }
    for state, count in Counter(job.state for job in final.values()).items():
        numbers[f"ended {state}"] = count
    for fault, count in Counter(
        action.invoke.fault for action in histories.by_name["fault"] if action.phase == "ok"
    ).items():
        numbers[f"fault: {fault}"] = count
    claims = sorted(action.answered for action in histories.by_name["claim"] if _granted(action))
    if claims and (pauses := sorted(seconds for _, seconds in _pauses_after_faults(histories, claims))):
        numbers["recovery p50, s"] = pauses[len(pauses) // 2]
        numbers["recovery p99, s"] = pauses[int(len(pauses) * 0.99)]
        numbers["recovery max, s"] = pauses[-1]
    if overlaps := sorted(_overlaps(histories)):
        numbers["zombie time max, s"] = overlaps[-1]
    return numbers
