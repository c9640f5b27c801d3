"""What the page of one run shows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, QueryDict

from dashboard import reads, stories
from dashboard.actions import BY_SLUG
from dashboard.formats import plural, read_number
from dashboard.links import run_url
from dashboard.overall import UNREACHABLE, Overall
from dashboard.permissions import OPERATE, may
from dashboard.workflows import words
from dashboard.workflows.comparison import comparison
from dashboard.workflows.course import BY_PROGRESS, BY_TROUBLE, Course, Step
from dashboard.workflows.faces import run_picture
from dashboard.workflows.gantt import gantt
from jobs.api.workflows import RetryPlan
from jobs.core.job import Job, moment_or_none
from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow import Box, Kind, RunFacts, waits
from jobs.exceptions import JobNotFound, SchedulerError

VIEWS = ("graph", "timeline", "table", "compare")
PER_PAGE = 100
ASKED_AT_ONCE = 500
"""So many jobs are asked for their exact state; of the other live nodes only that they live is known."""

TROUBLED_SHOWN = 8


@dataclass(frozen=True)
class Asked:
    """What the address asks for. An address is the whole state of the page."""

    run: str
    view: str = ""
    node: str = ""
    box: str = ""
    scope: str = ""
    plan: str = ""
    state: str = ""
    page: int = 1
    against: str = ""

    @classmethod
    def read(cls, run: str, given: QueryDict) -> Asked:
        def text(name: str) -> str:
            return given.get(name, "")[:200]

        return cls(
            run=run,
            view=text("view") if text("view") in VIEWS else "",
            node=text("node"),
            box=text("box"),
            scope=text("scope"),
            plan=text("plan"),
            state=text("state") if text("state") in set(JobState) else "",
            page=max(1, read_number(text("page"))),
            against=text("against"),
        )

    def url(self, **changes: Any) -> str:
        """The address of the same page with something else asked for."""
        asked = replace(self, **changes)
        return run_url(
            asked.run,
            view=asked.view,
            node=asked.node,
            box=asked.box,
            scope=asked.scope,
            plan=asked.plan,
            state=asked.state,
            page=str(asked.page) if asked.page > 1 else "",
            against=asked.against if asked.view == "compare" else "",
        )


@dataclass(frozen=True)
class Line:
    """A row of the table."""

    step: Step
    waits: str
    reason: str
    url: str


def run_page(request: HttpRequest, run_id: str, overall: Overall) -> dict[str, Any]:
    """Raises RunNotFound and StoreUnavailable."""
    asked = Asked.read(run_id, request.GET)
    run = reads.run(run_id)
    course = _course(run, asked, overall.now)
    finding, rest = words.story(course, _usual(run))
    waits_for = _waits_for(request, run, asked)
    planned = _planned(asked)
    plan = _plan(course, asked, planned) if may(request.user, OPERATE) else None
    retry_all_url = asked.url(plan=ALL_FAILED) if _has_failed(run) else ""
    shown = _table(course, asked, overall)
    return {
        "run": run,
        "asked": asked,
        "course": course,
        "finding": finding,
        "rest": rest,
        "shape": words.run_shape(run),
        "word": words.run_word(run),
        "counts": [
            (str(state), course.counts[state], asked.url(state=state, view="table", page=1, node="", box=""))
            for state in BY_PROGRESS
            if course.counts[state]
        ],
        "total": len(course.graph),
        "here": asked.url(),
        "whole_url": asked.url(scope="", node="", box="", plan="", page=1),
        "actions": _actions(run, course),
        "waits_for": waits_for,
        "decisions": (("approve", "Approve"), ("reject", "Reject")),
        "may_operate": may(request.user, OPERATE),
        "retry_all_url": retry_all_url,
        "plan": plan,
        "primary": _primary(plan, waits_for, retry_all_url),
        "command": f"python manage.py workflows show {shlex.quote(run_id)}",
        **_tabs(asked),
        **_view(course, asked, (*planned.again, *planned.waiting) if isinstance(planned, RetryPlan) else ()),
        **_chosen(course, asked),
        **shown,
    }


def _usual(run: RunFacts) -> float | None:
    """Seconds that runs of its workflow take; None where that is not known, or the database is away."""
    try:
        return next((view.totals.median_seconds for view in reads.workflows() if view.name == run.name), None)
    except DatabaseError:
        return None


def _primary(plan: Plan | None, waits_for: Sequence[Any], retry_all_url: str) -> str:
    """What the one loud button of the page does: the plan that is to be confirmed, the first approval that this reader
    may give (its node), else the retry (its address)."""
    if plan is not None and plan.number:
        return "plan"
    return next((each["it"].key for each in waits_for if each["may"]), retry_all_url)


def _has_failed(run: RunFacts) -> bool:
    return run.state in ("failed", "cancelled") or bool(run.counts.get("dead"))


def _course(run: Any, asked: Asked, now: datetime) -> Course:
    """The run as it stands, with the exact state of as many live nodes as one look can ask for."""
    nodes = reads.run_nodes(run)
    first = Course(run, nodes, now, scope=asked.scope)
    ids = first.live_jobs(list(first.graph.nodes))[:ASKED_AT_ONCE]
    if not ids:
        return first
    found = {job.node: job for job in reads.jobs_by_id(ids) if job is not None and job.node}
    return Course(run, nodes, now, scope=asked.scope, live=found)


def _tabs(asked: Asked) -> dict[str, Any]:
    labels = {"graph": "Graph", "timeline": "Timeline", "table": "Table", "compare": "Compare"}
    tabs = [(asked.url(view=view, plan="", page=1), label, view) for view, label in labels.items()]
    return {"tabs": tabs, "view": asked.view or "graph", "is_default": not asked.view}


def _view(course: Course, asked: Asked, again: Sequence[str]) -> dict[str, Any]:
    if asked.view == "table":
        return {}
    if asked.view == "compare":
        return {"comparison": comparison(course.run, asked.against)}
    if asked.view == "timeline":
        return {"gantt": gantt(course)}
    return {"picture": run_picture(course, _url_of(asked), chosen=asked.node or asked.box, again=again)}


def _url_of(asked: Asked) -> Any:
    def url(box: Box) -> str:
        return asked.url(box=box.key, node="", plan="") if box.is_stack else asked.url(node=box.key, box="", plan="")

    return url


ALL_FAILED = "failed"
"""In the address: a retry of everything that failed, and not from one node."""


@dataclass(frozen=True)
class Plan:
    """What a retry would run again, before anybody confirms it."""

    title: str
    rest: str
    node: str
    number: int
    back: str
    url: str


def _planned(asked: Asked) -> RetryPlan | SchedulerError | None:
    """What the retry would run again, or why nothing can be; None where no retry is asked for."""
    if not asked.plan:
        return None
    try:
        return reads.retry_plan(asked.run, _from(asked))
    except UNREACHABLE:
        raise
    except SchedulerError as error:
        return error


def _from(asked: Asked) -> str:
    return "" if asked.plan == ALL_FAILED else asked.plan


def _plan(course: Course, asked: Asked, found: RetryPlan | SchedulerError | None) -> Plan | None:
    if found is None:
        return None
    node, back, url = _from(asked), asked.url(plan=""), BY_SLUG["run.retry"].url
    if isinstance(found, SchedulerError):
        return Plan("Nothing would run again.", f"{found} {found.fix}".strip(), node, 0, back, url)
    again = {*found.again, *found.waiting}
    kept = sum(state is JobState.SUCCEEDED and key not in again for key, state in course.states.items())
    later = f", then {words.named(found.waiting)}" if found.waiting else ""
    rest = f"{words.named(found.again)} at once{later}. {plural(kept, 'node keeps', 'nodes keep')} what they did."
    return Plan(f"{plural(len(again), 'node')} would run again.", rest, node, len(again), back, url)


def _actions(run: RunFacts, course: Course) -> list[str]:
    """What can be done to the run as it stands, in the order of the buttons; a retry is planned on the page itself."""
    if run.is_over:
        return []
    if run.cancelled:
        return []
    signals = [step for step in course.steps() if step.kind is Kind.SIGNAL and step.state is JobState.READY]
    return [*(["run.signal"] if signals else []), "run.resume" if run.paused else "run.pause", "run.cancel"]


def _waits_for(request: HttpRequest, run: RunFacts, asked: Asked) -> list[Any]:
    """(what is waited for, until when, whether this reader may decide it), the approvals first."""
    if run.is_over or not any(run.counts.get(state) for state in ("ready", "leased")):
        return []
    found = sorted(reads.run_waiting(run.id), key=lambda each: each.kind != "approval")
    return [
        {
            "it": each,
            "url": asked.url(node=each.key, box="", plan=""),
            "since": moment_or_none(each.since_ms),
            "until": moment_or_none(each.until_ms or 0),
            "may": bool(each.permission and may(request.user, each.permission)),
        }
        for each in found[:TROUBLED_SHOWN]
    ]


def _chosen(course: Course, asked: Asked) -> dict[str, Any]:
    """The node or the stack that is looked at."""
    close = asked.url(node="", box="", plan="")
    step = course.find(asked.node)
    if step is not None:
        return {"one": step, "close": close, **_one(course, asked, step)}
    box = course.box(asked.box)
    if box is None:
        return {}
    counts = Counter(course.states[key] for key in box.nodes)
    troubled = sorted(box.nodes, key=lambda key: BY_TROUBLE.index(course.states[key]))[:TROUBLED_SHOWN]
    return {
        "stack": box,
        "stack_counts": [(str(state), counts[state]) for state in BY_PROGRESS if counts[state]],
        "stack_steps": [(course.step(key), asked.url(node=key, box="")) for key in troubled],
        "stack_url": asked.url(view="table", node="", page=1),
        "close": close,
    }


def _one(course: Course, asked: Asked, step: Step) -> dict[str, Any]:
    job = _job(step.job) if step.job else None
    why = reads.why(job) if job is not None else None
    parents = [course.step(key) for key in course.graph.parents[step.key]]
    children = [course.step(key) for key in course.graph.children[step.key]]
    return {
        "one_job": job,
        "one_reason": why.message if why else course.reason(step),
        "one_waits": _runs(course, step.key),
        "parents": [(each, asked.url(node=each.key, box="")) for each in parents[:TROUBLED_SHOWN]],
        "parents_more": max(0, len(parents) - TROUBLED_SHOWN),
        "children": [(each, asked.url(node=each.key, box="")) for each in children[:TROUBLED_SHOWN]],
        "children_more": max(0, len(children) - TROUBLED_SHOWN),
        "inside_url": asked.url(scope=step.key, node="", box="", plan="", page=1) if step.kind.is_group else "",
        "may_skip": _may_skip(course, step),
        "retry_url": asked.url(plan=step.key) if step.state in TERMINAL and step.view.released_at_ms else "",
    }


def _may_skip(course: Course, step: Step) -> bool:
    """Whether there is something to be gained by counting it as succeeded."""
    has_opened = step.kind.is_group and step.view.is_released
    is_decided = step.state is JobState.SUCCEEDED or step.kind is Kind.APPROVAL
    return not (has_opened or is_decided or course.run.cancelled)


def _job(job_id: str) -> Job | None:
    """None where it is kept no more."""
    try:
        return reads.job(job_id)
    except JobNotFound:
        return None


def _table(course: Course, asked: Asked, overall: Overall) -> dict[str, Any]:
    box = course.box(asked.box)
    keys: Sequence[str] = box.nodes if box is not None and box.is_stack else tuple(course.graph.nodes)
    if asked.state:
        keys = [key for key in keys if course.states[key] == asked.state]
    pages = max(1, -(-len(keys) // PER_PAGE))
    page = min(asked.page, pages)
    steps = course.steps(keys[(page - 1) * PER_PAGE : page * PER_PAGE])
    live = [step.job for step in steps if step.job and step.view.is_job]
    jobs = {job.id: job for job in reads.jobs_by_id(live) if job is not None} if live else {}
    return {
        "lines": [_line(course, asked, step, jobs.get(step.job), overall) for step in steps],
        "matching": len(keys),
        "page": page,
        "pages": pages,
        "previous_url": asked.url(page=page - 1) if page > 1 else "",
        "next_url": asked.url(page=page + 1) if page < pages else "",
        "all_url": asked.url(state="", box="", page=1),
    }


def _line(course: Course, asked: Asked, step: Step, job: Job | None, overall: Overall) -> Line:
    reason = stories.reason(job, overall) if job is not None else course.reason(step)
    return Line(step, _runs(course, step.key), reason, asked.url(node=step.key, box="", plan=""))


def _runs(course: Course, key: str) -> str:
    """When it runs: ``after extract``; nothing for a node that waits for nobody."""
    parents = course.graph.parents[key]
    return waits(course.graph, key) or (f"after {next(iter(parents))}" if parents else "")
