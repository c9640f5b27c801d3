"""The figures of a run that are published with it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from tests.faults.checker.histories import ENDINGS, Action, Histories, answer_for, given_back, is_granted
from tests.faults.checker.report import FinalJob


def recoveries_in(histories: Histories) -> int:
    """Jobs that were leased again after a lease that nobody gave back, or whose worker was seen to die."""
    recovered = {
        job
        for job, claims in histories.claims.items()
        for earlier, later in pairwise(claims)
        if not given_back(histories, job, earlier, later)
    }
    crashed = {
        job
        for action in histories.by_name["crash"]
        for job in action.invoke.facts.get("tokens", ())
        if answer_for(action, job) in {"ready", "dead"}
    }
    return len(recovered | crashed)


def refusals_in(histories: Histories) -> int:
    """Messages of stale leases that were turned away."""
    endings = sum(
        answer_for(action, job) == "lost"
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


def wanted_runs(histories: Histories, job: str) -> int:
    """The first run, and one for each failure that was followed by a retry."""
    return 1 + sum(
        action.name == "fail" and answer_for(action, job) in {"retry_wait", "scheduled"}
        for action in histories.by_job[job]
    )


def pauses_after_faults(histories: Histories, claims: Sequence[float]) -> Iterator[tuple[str, float]]:
    """Fault → seconds from its end to the next lease, for those after which there was one."""
    for fault in histories.by_name["fault"]:
        if fault.phase == "ok" and fault.answered < claims[-1]:
            following = claims[bisect_right(claims, fault.answered)]
            yield fault.invoke.fault or "", (following - fault.answered) / 1e9


def overlaps_in(histories: Histories) -> Iterator[float]:
    """Seconds in which a handler whose lease was lost still ran beside its successor: zombie time."""
    runs: defaultdict[str, list[Action]] = defaultdict(list)
    for job, run in histories.runs():
        runs[job].append(run)
    for several in runs.values():
        several.sort(key=lambda run: run.invoked)
        for earlier, later in pairwise(several):
            if earlier.outcome and earlier.answered > later.invoked:
                yield (earlier.answered - later.invoked) / 1e9


def numbers_of(histories: Histories, final: Mapping[str, FinalJob], executions: Mapping[str, int]) -> dict[str, float]:
    """The figures of the run that are published with it."""
    numbers: dict[str, float] = {
        "jobs acknowledged": len(histories.acknowledged_ids),
        "enqueues unknown": sum(action.phase == "unknown" for action in histories.by_name["enqueue"]),
        "enqueues refused": sum(action.phase == "refused" for action in histories.by_name["enqueue"]),
        "executions": sum(executions.values()),
        "leases": sum(len(claims) for claims in histories.claims.values()),
        "recoveries": recoveries_in(histories),
        "stale messages refused": refusals_in(histories),
    }
    for state, count in Counter(job.state for job in final.values()).items():
        numbers[f"ended {state}"] = count
    for fault, count in Counter(
        action.invoke.fault for action in histories.by_name["fault"] if action.phase == "ok"
    ).items():
        numbers[f"fault: {fault}"] = count
    claims = sorted(action.answered for action in histories.by_name["claim"] if is_granted(action))
    if claims and (pauses := sorted(seconds for _, seconds in pauses_after_faults(histories, claims))):
        numbers["recovery p50, s"] = pauses[len(pauses) // 2]
        numbers["recovery p99, s"] = pauses[int(len(pauses) * 0.99)]
        numbers["recovery max, s"] = pauses[-1]
    if overlaps := sorted(overlaps_in(histories)):
        numbers["zombie time max, s"] = overlaps[-1]
    return numbers
