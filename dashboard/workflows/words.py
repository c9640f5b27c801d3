"""What a run's page says in sentences: how it stands, and what that rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.formats import count, duration, plural, shortened
from dashboard.workflows.course import Course, Step
from jobs.core.states import JobState
from jobs.core.workflow import Kind, RunFacts

SHAPES = {
    "running": "leased",
    "preparing": "scheduled",
    "succeeded": "succeeded",
    "failed": "dead",
    "cancelled": "cancelled",
}
"""State of a run → the shape and colour that it is shown in."""

_NAMED = 3


def run_shape(run: RunFacts) -> str:
    return SHAPES.get(run.state, "scheduled")


def run_word(run: RunFacts) -> str:
    """``running``, ``paused``, ``failed``."""
    if run.is_over:
        return run.state
    return "cancelling" if run.cancelled else "paused" if run.paused else run.state


def story(course: Course, usual: float | None = None) -> tuple[str, str]:
    """How the run stands, in a short sentence, and what that rests on. ``usual``: seconds that it takes else."""
    run = course.run
    seconds = run.seconds if run.seconds is not None else _since(course)
    match run.state:
        case "succeeded":
            rest = (_largest_part(course), _what_died(course))
            return f"Succeeded in {duration(seconds)}{_against(seconds, usual)}.", " ".join(
                part for part in rest if part
            )
        case "failed":
            return f"Failed after {duration(seconds)}.", _what_failed(course)
        case "cancelled":
            return f"Cancelled after {duration(seconds)}.", _by(run.cancelled)
        case "preparing":
            return (
                "Is being prepared.",
                f"{plural(run.total, 'node')} are written down so far; none starts before all are.",
            )
        case _ if run.cancelled:
            return "Is being cancelled: what runs is asked to stop, nothing else starts.", _by(run.cancelled)
        case _ if run.paused:
            return "Paused: what runs goes on, nothing more is released.", _by(run.paused)
        case _:
            usually = f" Usually it takes {duration(usual)}." if usual else ""
            return f"Running for {duration(seconds)}.", _what_goes_on(course) + usually


def _since(course: Course) -> float:
    return max(0.0, course.now.timestamp() - course.run.created_at_ms / 1000)


def _against(seconds: float, usual: float | None) -> str:
    """``, 8 s faster than usual``; nothing where the difference is no news."""
    if not usual or abs(seconds - usual) < max(1.0, usual * 0.1):
        return ""
    word = "slower" if seconds > usual else "faster"
    return f", {duration(abs(seconds - usual))} {word} than usual"


def _largest_part(course: Course) -> str:
    """``load took 31 s of it.``"""
    path = [step for step in course.steps(course.critical) if step.took]
    longest = max(path, key=lambda step: step.took or 0.0, default=None)
    return f"{longest.key} took {duration(longest.took)} of it." if longest else ""


def _what_died(course: Course) -> str:
    """Of a run that succeeded all the same."""
    dead = course.counts[JobState.DEAD]
    first = course.first(JobState.DEAD)
    if first is None:
        return ""
    who = f"{first.key} is" if dead == 1 else f"{count(dead)} nodes are"
    return f"{who} dead, which other nodes dealt with."


def _what_failed(course: Course) -> str:
    dead = [step for step in course.steps() if step.state is JobState.DEAD]
    skipped = course.counts[JobState.SKIPPED]
    parts = []
    if len(dead) == 1:
        parts.append(f"{dead[0].key} is dead{_colon(dead[0].error)}.")
    elif dead:
        parts.append(f"{count(len(dead))} nodes are dead, the first of them {dead[0].key}{_colon(dead[0].error)}.")
    if skipped:
        parts.append(f"{plural(skipped, 'node was', 'nodes were')} skipped.")
    return " ".join(parts)


def _what_goes_on(course: Course) -> str:
    ended = (
        f"{count(course.ended)} of {plural(len(course.graph), 'node')} {'has' if course.ended == 1 else 'have'} ended"
    )
    running = [step for step in course.steps() if step.state is JobState.LEASED]
    asked = [step for step in course.steps() if step.kind.is_wait and step.state is JobState.READY]
    if asked and not running:
        return f"{ended}; {_asked(asked)}."
    if running:
        return f"{ended}; {_names(running)} {'runs' if len(running) == 1 else 'run'}."
    waiting = course.first(JobState.RETRY_WAIT, JobState.READY, JobState.SCHEDULED)
    if waiting:
        return f"{ended}; nothing runs, {waiting.key} is {waiting.word}."
    return f"{ended}."


def _asked(steps: list[Step]) -> str:
    """``fit needs approval; paid and sent await a signal``"""
    parts = []
    for kind in (Kind.APPROVAL, Kind.SIGNAL):
        if alike := [step for step in steps if step.kind is kind]:
            verb, what = kind.wait_word.split(" ", 1)
            parts.append(f"{_names(alike)} {verb if len(alike) == 1 else verb.removesuffix('s')} {what}")
    return "; ".join(parts)


def _names(steps: list[Step]) -> str:
    return named([step.key for step in steps])


def named(names: Sequence[str]) -> str:
    """``extract, load and 4 more``"""
    if len(names) > _NAMED:
        return f"{', '.join(names[: _NAMED - 1])} and {count(len(names) - _NAMED + 1)} more"
    *first, last = names or ("nothing",)
    return f"{', '.join(first)} and {last}" if first else last


def _by(why: Any) -> str:
    """Who did it and why, as far as it was kept."""
    if isinstance(why, dict):
        by, reason = str(why.get("by") or ""), str(why.get("reason") or "")
        return shortened(f"By {by}{_colon(reason)}." if by else f"{reason}." if reason else "", 300)
    return f"{shortened(why, 300)}." if isinstance(why, str) and why else ""


def _colon(text: str) -> str:
    return f": {text.rstrip('.')}" if text else ""
