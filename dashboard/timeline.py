"""A job's life as parts of a line and as a table of changes, worked out from its times and its attempts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest

from dashboard.formats import duration, shortened
from jobs.api.audit import AuditRecord
from jobs.core.fingerprint import FOREIGN, FRAME
from jobs.core.job import Attempt, Job
from jobs.core.states import JobState

CANCELLED = JobState.CANCELLED

WIDEST = 24
"""Parts get whole-number widths from 1 to this, so that the style sheet can carry them (no inline styles)."""

OUTCOME_STATES = {
    "succeeded": "succeeded",
    "failed": "dead",
    "crashed": "dead",
    "cancelled": "cancelled",
    "released": "ready",
    "running": "leased",
    "snoozed": "scheduled",
}
"""Outcome of an attempt → the state whose colour and shape it is shown in."""


RESUBMITTED, CANCELLED_BY = "Resubmitted", "Cancelled"

ACTS = {
    "job.resubmit": ("ready", RESUBMITTED),
    "job.run_now": ("ready", "Made ready"),
    "job.cancel": (str(CANCELLED), CANCELLED_BY),
}
"""Action in the audit log → the state that the job came to by it, and what is said of it."""


@dataclass(frozen=True)
class Part:
    """One stretch of a job's life. ``kind``: wait, run or backoff; ``state`` gives its colour."""

    kind: str
    state: str
    label: str
    seconds: float
    width: int = 1
    open: bool = False  # still going on


@dataclass(frozen=True)
class Change:
    """One line of the job's history."""

    at: datetime
    state: str
    what: str
    why: str


def outcome_state(outcome: str) -> str:
    return OUTCOME_STATES.get(outcome, "cancelled")


def parts(job: Job, now: datetime) -> list[Part]:
    """The stretches from the job's creation to its end (or to now), in order. Attempts not kept are left out."""
    found = list(_parts(job, now))
    longest = max((part.seconds for part in found), default=0.0)
    return [
        Part(part.kind, part.state, part.label, part.seconds, _width(part.seconds, longest), part.open)
        for part in found
    ]


def _width(seconds: float, longest: float) -> int:
    """Follows the length by its square root: short parts stay visible, long ones stay longer."""
    return max(1, round(WIDEST * math.sqrt(seconds / longest))) if longest > 0 else 1


def _parts(job: Job, now: datetime) -> Iterator[Part]:
    started = [attempt for attempt in job.attempts if attempt.started_at]
    clock = job.created_at
    if job.state == JobState.SCHEDULED and not started:
        yield Part("wait", "scheduled", "scheduled", max(0.0, (now - clock).total_seconds()), open=True)
        return
    for number, attempt in enumerate(started):
        start = attempt.started_at
        assert start is not None
        yield from _before(job, started[number - 1] if number else None, attempt, clock, start)
        end = attempt.finished_at or (job.finished_at if job.is_terminal else None) or now
        state = outcome_state(attempt.outcome)
        yield Part(
            "run",
            state,
            f"run {attempt.attempt}",
            max(0.0, (end - start).total_seconds()),
            open=attempt.finished_at is None,
        )
        clock = end
    if not job.is_terminal and (not started or started[-1].finished_at is not None):
        state = str(job.state)
        label = {"retry_wait": "backoff", "ready": "waits", "leased": "handed over"}.get(state, state.replace("_", " "))
        kind = "backoff" if state == "retry_wait" else "wait"
        yield Part(
            kind, "ready" if state == "leased" else state, label, max(0.0, (now - clock).total_seconds()), open=True
        )
    elif not started and job.finished_at:
        yield Part("wait", "ready", "waited", max(0.0, (job.finished_at - clock).total_seconds()))


def _before(job: Job, previous: Attempt | None, attempt: Attempt, clock: datetime, start: datetime) -> Iterator[Part]:
    """The wait before an attempt: until it was due and for a slot; after a failure the backoff, or for a resubmit."""
    waited = max(0.0, (start - clock).total_seconds())
    if previous and _was_last(previous, attempt):
        state = outcome_state(previous.outcome)
        yield Part("wait", state, state, waited)
    elif previous and previous.outcome in ("crashed", "released"):
        yield Part("wait", "ready", "waited", waited)
    elif previous:
        yield Part("backoff", "retry_wait", "backoff", waited)
    elif job.run_at > job.created_at and job.run_at < start and (job.run_at - clock).total_seconds() >= 0.001:
        yield Part("wait", "scheduled", "scheduled", (job.run_at - clock).total_seconds())
        yield Part("wait", "ready", "waited", (start - job.run_at).total_seconds())
    else:
        yield Part("wait", "ready", "waited", waited)


def _was_last(attempt: Attempt, following: Attempt | None) -> bool:
    """Whether the job had ended with it, and was resubmitted: attempts are counted anew then."""
    ended = attempt.outcome in ("failed", "crashed", "cancelled")
    return ended and following is not None and following.attempt <= attempt.attempt


def busy_words(found: list[Part]) -> str:
    """``0.8 s of 7.9 s was running``"""
    total = sum(part.seconds for part in found)
    running = sum(part.seconds for part in found if part.kind == "run")
    return f"{duration(running)} of {duration(total)} was running" if total and running else ""


def changes(job: Job, done_to: Sequence[AuditRecord] = ()) -> list[Change]:
    """Every change of state that is on record, oldest first, with what people did to it (``done_to``). Of attempts
    beyond those kept nothing is known.
    """
    scheduled = job.run_at > job.created_at and (not job.attempts or job.attempts[0].attempt == 1)
    delay = (job.run_at - job.created_at).total_seconds()
    first = job.state == JobState.SCHEDULED and scheduled
    created = Change(
        job.created_at, "scheduled" if first else "ready", "Created", f"due {duration(delay)} later" if first else ""
    )
    acts = [act for entry in done_to if (act := _act(entry, job))]
    return [created, *sorted([*_later_changes(job, _last(acts, job)), *acts], key=lambda change: change.at)]


def _last(acts: Sequence[Change], job: Job) -> str:
    """What somebody did to it last, where it has not run since: how it stands is told by that."""
    last = max(acts, key=lambda act: act.at, default=None)
    if last is None or any(attempt.started_at and attempt.started_at > last.at for attempt in job.attempts):
        return ""
    return last.what


def _act(entry: AuditRecord, job: Job) -> Change | None:
    """What somebody changed of its state: who, and why."""
    state, what = ACTS.get(entry.action, ("", ""))
    if what == CANCELLED_BY and any(_ran_at(entry.at, attempt) for attempt in job.attempts):
        state, what = "leased", "Asked to stop"
    why = f"{entry.who}: {entry.reason}" if entry.reason else entry.who
    return Change(entry.at, state, what, why) if what else None


def _ran_at(at: datetime, attempt: Attempt) -> bool:
    began, ended = attempt.started_at, attempt.finished_at
    return began is not None and began <= at and (ended is None or at < ended)


def _later_changes(job: Job, last: str) -> Iterator[Change]:
    """``last``: what is told already with who did it."""
    told = False
    for attempt, following in zip_longest(job.attempts, job.attempts[1:]):
        if attempt.started_at:
            yield Change(attempt.started_at, "leased", f"Attempt {attempt.attempt} started", attempt.worker)
        if attempt.finished_at and attempt.outcome != "running":
            final = job.is_terminal and attempt is job.attempts[-1]
            told = told or final
            state = _state_after(job, attempt, final=final, resubmitted=_was_last(attempt, following))
            why = attempt_error(attempt)
            yield Change(attempt.finished_at, state, f"Attempt {attempt.attempt} {attempt.outcome}", why)
    if job.resubmissions and job.attempt == 0 and job.ready_at and last != RESUBMITTED:
        yield Change(job.ready_at, "ready", RESUBMITTED, "attempts are counted anew")
    if job.is_terminal and job.finished_at and not told and not (job.state == CANCELLED and last == CANCELLED_BY):
        yield Change(job.finished_at, str(job.state), f"Ended as {job.state}", "")


def _state_after(job: Job, attempt: Attempt, *, final: bool, resubmitted: bool) -> str:
    """What the job became when the attempt ended, as far as the outcome tells."""
    if final:
        return str(job.state)
    if resubmitted:
        return outcome_state(attempt.outcome)
    return {"failed": "retry_wait", "crashed": "ready", "released": "ready", "cancelled": "cancelled"}.get(
        attempt.outcome, outcome_state(attempt.outcome)
    )


def attempt_error(attempt: Attempt) -> str:
    """The attempt's error on one line."""
    error = attempt.error or {}
    kind, message = str(error.get("type") or ""), str(error.get("message") or "")
    return shortened(f"{kind}: {message}" if kind and message else kind or message, 200)


def same_error(job: Job) -> set[int]:
    """Numbers of the attempts that failed with just the error of the attempt after them: shown as “same error”."""
    repeated = set()
    for earlier, later in zip(job.attempts, job.attempts[1:], strict=False):
        if attempt_error(earlier) and attempt_error(earlier) == attempt_error(later):
            repeated.add(earlier.attempt)
    return repeated


@dataclass(frozen=True)
class Frames:
    """Neighbouring frames of a traceback that are all of the project's own code, or all of a library."""

    text: str
    number: int
    own: bool


def frames(traceback: str) -> list[Frames]:
    """A traceback in stretches: own code to read, library code to fold. What is no frame belongs to its neighbours."""
    found: list[tuple[list[str], int, bool]] = []
    for line in traceback.splitlines():
        match = FRAME.match(line)
        if match is not None:
            own = not FOREIGN.search(match[1])
            if found and found[-1][2] == own:
                found[-1] = (found[-1][0], found[-1][1] + 1, own)
            else:
                found.append(([], 1, own))
        elif not found or (not found[-1][2] and not line.startswith(" ")):
            found.append(([], 0, True))  # the head, and the error itself after a library's last frame
        found[-1][0].append(line)
    return [Frames("\n".join(lines), number, own) for lines, number, own in found]
