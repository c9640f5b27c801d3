"""The checks, in the order of their numbers: each says what a run forbids and yields every breach of it."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import inf

from tests.faults.checker.figures import overlaps_in, pauses_after_faults, recoveries_in
from tests.faults.checker.histories import (
    CLOCK_SLACK_MS,
    Action,
    Claim,
    Histories,
    answer_for,
    claim_of,
    is_granted,
    is_over,
    token_for,
)
from tests.faults.checker.report import TERMINAL, Expectations, FinalJob, Violation
from tests.faults.history import describe
from tests.faults.linear import Operation, explains

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
            token = token_for(action, job)
            if action.name not in {"complete", "fail"} or answer_for(action, job) in {"", "lost", "refused"}:
                continue
            accepted.add(token)
            for claim in claims:
                newer = claim.token != token and claim.fence > _fence_of(claims, token)
                if newer and claim.action.answered < action.invoked:
                    yield Violation("K4", job, f"{action.name} of lease {token} accepted after lease {claim.token}")
        lives = 1 + (final[job].resubmissions if job in final else 0)
        ended = {
            token_for(action, job)
            for action in histories.by_job[job]
            if action.name == "complete" and answer_for(action, job) == "ok"
        }
        if len(ended) > lives:
            yield Violation("K4", job, f"completed under {len(ended)} different leases")


def leases_do_not_overlap(
    histories: Histories, final: Mapping[str, FinalJob], expected: Expectations
) -> Iterator[Violation]:
    """K5: a lease begins after the one before it was given back or ran out by the server's clock."""
    for job, claims in histories.claims.items():
        for earlier, later in pairwise(claims):
            if not is_over(histories, job, earlier, later):
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
                older = claim_of(histories, job, earlier)
                newer = claim_of(histories, job, later)
                if older and newer and not is_over(histories, job, older, newer):
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
            token_for(action, job)
            for action in histories.by_job[job]
            if action.name in {"release", "park"}
            and not action.invoke.facts.get("charged")
            and answer_for(action, job) in {"ready", "cancelled"}
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
                if waits and answer_for(action, job) in {"retry_wait", "scheduled"}:
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
    claims = sorted(action.answered for action in histories.by_name["claim"] if is_granted(action))
    if not claims:
        return
    for _, seconds in pauses_after_faults(histories, claims):
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
    if (recoveries := recoveries_in(histories)) < expected.recoveries:
        yield Violation(
            "run", "recoveries", f"{recoveries} jobs went on after a lost lease, {expected.recoveries} wanted"
        )
    if (zombies := len(list(overlaps_in(histories)))) < expected.zombies:
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


def _fence_of(claims: Sequence[Claim], token: str) -> float:
    """The fence of a lease; one whose grant nobody heard of counts as the newest."""
    return next((claim.fence for claim in claims if claim.token == token), inf)


def _pool_of(claims: Sequence[Claim]) -> str | None:
    return claims[0].action.invoke.pool if claims else None


def _asked_to_die(histories: Histories, job: str) -> bool:
    return any(run.name == "run" and run.answer == "raised Dead" for run in histories.by_job[job])


def _operations(action: Action, job: str) -> Iterator[Operation]:
    """An action as an operation of the automaton on one job; nothing if it is not about states."""
    token = token_for(action, job)
    match action.name:
        case "enqueue" | "claim" | "resubmit" | "cancel":
            answer = {"refused": "refused", "unknown": ""}.get(action.phase, action.answer)
        case "complete" | "fail" | "release" | "crash" | "park":
            answer = answer_for(action, job)
        case _:
            return
    yield Operation(action.name, action.invoked, action.answered, token, answer)
