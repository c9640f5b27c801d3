"""The boxes of a run's picture: what each says, and how it is marked."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection

from dashboard.formats import count, plural
from dashboard.workflows.course import BY_PROGRESS, BY_TROUBLE, WORDS, Course
from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow import Box, Face, Picture, Share, picture

STAND_OUT = (JobState.DEAD, JobState.LEASED, JobState.RETRY_WAIT, JobState.READY, JobState.SCHEDULED)
"""States that a box of many nodes names before it says how many have ended."""


def run_picture(
    course: Course, url_of: Callable[[Box], str], *, chosen: str = "", again: Collection[str] = ()
) -> Picture:
    """The run as a picture. ``chosen``: the node that is looked at; ``again``: nodes that a retry would run again."""
    critical = [box.key for key in course.critical if (box := course.box(key))]

    def face(box: Box) -> Face:
        marks = [
            ("is-critical", box.key in critical),
            ("is-chosen", chosen in box.nodes),
            ("is-again", any(key in again for key in box.nodes)),
        ]
        shown = tuple(mark for mark, applies in marks if applies)
        return _stack(course, box, url_of, shown) if box.is_stack else _single(course, box, url_of, shown)

    pairs = frozenset(itertools.pairwise(critical))
    return picture(course.layout, face, _label(course), pairs)


def _single(course: Course, box: Box, url_of: Callable[[Box], str], marks: tuple[str, ...]) -> Face:
    step = course.step(box.key)
    reason = course.reason(step)
    parts = [f"{step.key}: {step.line}", "on the critical path" if step.is_critical else "", reason]
    label = ", ".join(part for part in parts if part)
    return Face(step.key, step.line, label, str(step.state), url_of(box), (), marks)


def _stack(course: Course, box: Box, url_of: Callable[[Box], str], marks: tuple[str, ...]) -> Face:
    counts = Counter(course.states[key] for key in box.nodes)
    word = stack_words(counts)
    return Face(
        f"{box.name} ×{count(len(box.nodes))}",
        word,
        f"{plural(len(box.nodes), 'node')} {box.name}: {_counted(counts)}",
        str(next(state for state in BY_TROUBLE if counts[state])),
        url_of(box),
        tuple(Share(str(state), counts[state]) for state in BY_PROGRESS if counts[state]),
        marks,
    )


def stack_words(counts: Counter[JobState]) -> str:
    """``3 dead, 912 done``: what stands out, then how many have ended."""
    told = [f"{count(counts[state])} {WORDS.get(state, str(state))}" for state in STAND_OUT if counts[state]][:1]
    ended = sum(counts[state] for state in TERMINAL - {JobState.DEAD})
    if ended == counts.total():
        return f"all {_only(counts) or 'ended'}"
    if ended or not told:
        told.append(f"{count(ended)} ended" if ended else f"{count(counts.total())} wait")
    return ", ".join(told)


def _only(counts: Counter[JobState]) -> str:
    found = [state for state in counts if counts[state]]
    return WORDS.get(found[0], str(found[0])) if len(found) == 1 else ""


def _counted(counts: Counter[JobState]) -> str:
    return ", ".join(f"{count(counts[state])} {WORDS.get(state, str(state))}" for state in BY_TROUBLE if counts[state])


def _label(course: Course) -> str:
    nodes = plural(len(course.graph), "node")
    return f"Graph of {course.scope or course.run.name}, {nodes}, from left to right: {_counted(course.counts)}"
