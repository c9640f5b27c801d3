"""The events of a run, grouped the ways that the checks need them, and what they ask of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from tests.faults.history import Event

ENDINGS = frozenset({"complete", "fail", "release", "crash", "park"})
CLOCK_SLACK_MS = 3
"""Times are kept in whole milliseconds: two of them may round towards each other, and a start is one step later."""


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
        self.actions = pair(self.events)
        self.by_name: defaultdict[str, list[Action]] = defaultdict(list)
        self.by_job: defaultdict[str, list[Action]] = defaultdict(list)
        for action in self.actions:
            self.by_name[action.name].append(action)
            for job in jobs_of(action):
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


def pair(events: Sequence[Event]) -> list[Action]:
    """Invocations with their outcomes, in the order of the invocations."""
    actions: dict[str, Action] = {}
    for event in events:
        if event.phase == "invoke":
            actions[event.op] = Action(event)
        elif event.op in actions:
            actions[event.op].outcome = event
    return list(actions.values())


def jobs_of(action: Action) -> set[str]:
    """The jobs that an action was about, as far as anybody knows."""
    jobs = set(action.invoke.facts.get("tokens", ()))
    if action.invoke.job:
        jobs.add(action.invoke.job)
    if action.outcome:
        jobs.update(action.outcome.facts.get("fences", ()))
        if action.outcome.job:
            jobs.add(action.outcome.job)
    return jobs


def token_for(action: Action, job: str) -> str:
    return str(action.invoke.facts.get("tokens", {}).get(job, action.invoke.token or ""))


def answer_for(action: Action, job: str) -> str:
    """What the server said of this job; "" where nobody heard."""
    if action.outcome is None or action.outcome.phase == "unknown":
        return ""
    return str(action.outcome.facts.get("answers", {}).get(job, action.answer))


def is_granted(action: Action) -> bool:
    return bool(action.outcome and action.outcome.facts.get("fences"))


def given_back(histories: Histories, job: str, earlier: Claim, later: Claim) -> bool:
    """Whether the earlier lease's holder had sent its end before the later lease was granted.

    Even "lost" counts: the store sends a message again whose answer was lost, and hears that it is over.
    """
    return any(
        action.name in ENDINGS and token_for(action, job) == earlier.token and action.invoked <= later.action.answered
        for action in histories.by_job[job]
    )


def is_over(histories: Histories, job: str, earlier: Claim, later: Claim) -> bool:
    """Whether the earlier lease had run out by the server's clock, or was given back, when the later was granted."""
    ran_out = later.granted_ms + CLOCK_SLACK_MS >= earlier.deadline_ms
    return ran_out or given_back(histories, job, earlier, later)


def claim_of(histories: Histories, job: str, run: Action) -> Claim | None:
    """The lease under which a handler ran, if its grant was heard of."""
    return next((claim for claim in histories.claims[job] if claim.fence == run.invoke.fence), None)
