"""One run at one moment: its nodes as a graph, how each stands and why, and what the run's length was made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from dashboard.formats import duration, shortened
from dashboard.workflows.shapes import shape_of
from jobs.core.job import Job
from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow import (
    Axis,
    Box,
    Graph,
    Kind,
    Layout,
    NodeView,
    RunFacts,
    Span,
    axis,
    critical_path,
    why_skipped,
    why_waiting,
)

BY_TROUBLE = (
    JobState.DEAD,
    JobState.LEASED,
    JobState.RETRY_WAIT,
    JobState.READY,
    JobState.SCHEDULED,
    JobState.CANCELLED,
    JobState.BLOCKED,
    JobState.SKIPPED,
    JobState.SUCCEEDED,
)
"""The order in which states matter to somebody who looks at many nodes at once."""

BY_PROGRESS = (
    JobState.SUCCEEDED,
    JobState.SKIPPED,
    JobState.CANCELLED,
    JobState.DEAD,
    JobState.LEASED,
    JobState.RETRY_WAIT,
    JobState.READY,
    JobState.SCHEDULED,
    JobState.BLOCKED,
)
"""The order of states in a bar that fills from the left."""

WORDS = {JobState.LEASED: "running", JobState.RETRY_WAIT: "retry wait", JobState.BLOCKED: "waiting"}
"""States of nodes whose word on a page is another one."""


def error_line(view: NodeView) -> str:
    """What a node died of, on one line."""
    found = view.error or {}
    return shortened(": ".join(str(found[part]) for part in ("type", "message") if found.get(part)), 200)


@dataclass(frozen=True)
class Step:
    """A node of a run."""

    view: NodeView
    state: JobState
    span: Span
    now: datetime
    is_critical: bool = False

    @property
    def key(self) -> str:
        return self.view.key

    @property
    def kind(self) -> Kind:
        return self.view.node.kind

    @property
    def label(self) -> str:
        """What it runs or waits for: its job type, where it has one."""
        return self.view.node.label

    @property
    def job(self) -> str:
        return self.view.job or ""

    @property
    def word(self) -> str:
        if self.kind.is_wait and self.state is JobState.READY:
            return self.kind.wait_word
        return WORDS.get(self.state, str(self.state))

    @property
    def took(self) -> float | None:
        """Seconds from its start to its end, or until now. A wait has no start: it counts from its release."""
        began = self.span.released if self.kind.is_wait else self.span.started
        if began is None:
            return None
        end = self.span.ended if self.span.ended is not None else int(self.now.timestamp() * 1000)
        return max(0.0, (end - began) / 1000)

    @property
    def waited(self) -> float | None:
        """Seconds from its release to its start."""
        if self.span.started is None or self.span.released is None:
            return None
        return max(0.0, (self.span.started - self.span.released) / 1000)

    @property
    def line(self) -> str:
        """How it stands, in a few words: what its box says."""
        if self.view.skipped:
            return f"{self.word}, skipped"
        if self.took is None:
            return self.word
        between = " " if self.state is JobState.LEASED else ", "
        return f"{self.word}{between}{duration(self.took)}"

    @property
    def error(self) -> str:
        return error_line(self.view)


class Course:
    """The nodes of one scope of a run: its own (``scope`` empty), or the members of the group of that key."""

    def __init__(
        self,
        run: RunFacts,
        nodes: Iterable[NodeView],
        now: datetime,
        *,
        scope: str = "",
        live: Mapping[str, Job] | None = None,
    ) -> None:
        """``live``: node → its job, where that was asked; of other live nodes the run knows only that they live."""
        nodes = list(nodes)
        self.run, self.now = run, now
        self.scope = scope if any(view.key == scope for view in nodes) else ""
        self.views = {view.key: view for view in nodes if view.scope == self.scope}
        self._live = live or {}
        shape = shape_of([view.node for view in self.views.values()])
        self.graph: Graph = shape.graph
        self.layout: Layout = shape.layout

    @cached_property
    def states(self) -> dict[str, JobState]:
        return {key: self._state(key, view) for key, view in self.views.items()}

    def _state(self, key: str, view: NodeView) -> JobState:
        if view.is_job and view.kind.is_group:
            return JobState.LEASED
        job = self._live.get(key)
        if job is None or not view.is_job or job.is_terminal:
            return JobState(view.state)
        return JobState.READY if job.state is JobState.LEASED and not job.is_running else job.state

    @cached_property
    def counts(self) -> Counter[JobState]:
        return Counter(self.states.values())

    @cached_property
    def spans(self) -> dict[str, Span]:
        return {key: self._span(key, view) for key, view in self.views.items()}

    def _span(self, key: str, view: NodeView) -> Span:
        started = view.started_at_ms
        job = self._live.get(key)
        if view.kind.is_group:
            started = view.released_at_ms
            return Span(started or None, started or None, view.ended_at_ms or None)
        if view.is_job:  # the run hears of a start when the node ends
            started = round(job.started_at.timestamp() * 1000) if job is not None and job.started_at else 0
        return Span(view.released_at_ms or None, started or None, view.ended_at_ms or None)

    @cached_property
    def critical(self) -> tuple[str, ...]:
        """The nodes that the run's length is made of. Of one node alone there is nothing to tell."""
        path = critical_path(self.graph, self.spans)
        return path if len(path) > 1 else ()

    @cached_property
    def axis(self) -> Axis:
        return axis(self.spans.values(), int(self.now.timestamp() * 1000))

    @cached_property
    def _critical_nodes(self) -> frozenset[str]:
        return frozenset(self.critical)

    def step(self, key: str) -> Step:
        return Step(self.views[key], self.states[key], self.spans[key], self.now, key in self._critical_nodes)

    def find(self, key: str) -> Step | None:
        """The node of this key, None where there is none."""
        return self.step(key) if key in self.views else None

    def steps(self, keys: Collection[str] | None = None) -> list[Step]:
        """In the order in which parents come first."""
        return [self.step(key) for key in (self.graph.nodes if keys is None else keys)]

    def box(self, key: str) -> Box | None:
        """The box in which a node is drawn."""
        placed = self.layout.box_of.get(key)
        return placed.box if placed else None

    def reason(self, step: Step) -> str:
        """Why it waits or never ran, or what it died of; nothing for one that does well or whose job can say more."""
        match step.state:
            case JobState.BLOCKED:
                return why_waiting(self.graph, self.states, step.key)
            case JobState.SKIPPED:
                return f"Skipped: {why_skipped(self.graph, self.states, step.key)}"
            case JobState.DEAD:
                return step.error or "Its retries are spent."
            case JobState.SUCCEEDED if step.view.skipped:
                return f"Counts as succeeded: {step.view.skipped}."
            case JobState.CANCELLED if not step.job:
                return "The run was cancelled before it was released."
            case _:
                return ""

    @property
    def ended(self) -> int:
        return sum(number for state, number in self.counts.items() if state in TERMINAL)

    def first(self, *states: JobState) -> Step | None:
        """The first node in one of these states."""
        return next((self.step(key) for key in self.graph.nodes if self.states[key] in states), None)

    def live_jobs(self, keys: Sequence[str]) -> list[str]:
        """Ids of jobs whose state the run does not know exactly."""
        return [view.job for key in keys if (view := self.views[key]).is_job and view.job]
