"""Runs of workflows: starting them, and looking at them."""

from __future__ import annotations

import asyncio
import builtins
import re
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import msgspec

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.api.redaction import shown_nodes, shown_results, shown_value
from jobs.api.waiting import Pauses
from jobs.api.workflow_checks import Document, validate
from jobs.api.workflow_nesting import in_full
from jobs.core.payload import encode_any
from jobs.core.states import JobState
from jobs.core.wording import shown
from jobs.core.workflow import Definition, NodeView, RunFacts
from jobs.engine import get_engine
from jobs.engine.workflows import NodeCounts, new_run_id
from jobs.exceptions import JobTimeout, OptionInvalid
from jobs.runtime.relaying import Relay

SCANNED = 1000
"""Runs that one page looks at where it is to hold only some of them."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,149}")


class RunPage(NamedTuple):
    """Runs, newest first, and where the next page begins; None where there is none."""

    items: Sequence[RunFacts]
    next_cursor: str | None


def start(
    what: Document,
    payload: Mapping[str, Any] | None = None,
    *,
    id: str | None = None,
    version: int | None = None,
    schedule: str | None = None,
    fire_time: datetime | None = None,
    started_by: str | None = None,
    allow_unknown: bool = False,
) -> RunFacts:
    """Starts a run of a workflow and answers how it stands.

    ``what``: the name of a stored workflow, or a workflow in any of its forms. A run of a stored one keeps the version
    that is the newest now. ``payload``: for templates, as ``{"$from": "run.payload.day"}``. ``id``: the caller's; where
    a run has it already, that one is answered and nothing is started. ``version``, ``schedule``, ``fire_time`` and
    ``started_by`` are kept with the run. WorkflowNotFound, WorkflowInvalid, PayloadInvalid, StoreUnavailable,
    OutcomeUnknown (then the same id may be started again).
    """
    if is_name(what):
        from jobs.api.workflow_definitions import definition as newest  # models: only once Django is set up

        stored = newest(what)
        what, version = stored.definition, stored.version
    definition = in_full(validate(what, allow_unknown=allow_unknown))
    run_id = new_run_id() if id is None else _checked_id(id)
    facts = {
        "deadline_ms": _deadline_ms(definition),
        "version": version,
        "payload": msgspec.Raw(encode_any(definition.name, payload or {})),
        "schedule": schedule,
        "fire_time_ms": None if fire_time is None else round(fire_time.timestamp() * 1000),
        "started_by": started_by or audit.actor().who,
    }
    Relay(get_engine()).start(run_id, definition, facts)
    if audit.actor().source != "python":  # what programs start is as little a control as what they enqueue
        audit.record("workflow.start", definition.name, after={"run": run_id})
    return get(run_id)


def is_name(what: Document) -> TypeGuard[str]:
    """Whether a text is the name of a stored workflow; else it is the JSON of one."""
    return isinstance(what, str) and not what.lstrip().startswith("{")


def get(run_id: str) -> RunFacts:
    """A run without its nodes. RunNotFound."""
    return get_engine().workflows.facts(run_id)


def list(*, name: str | None = None, state: str | None = None, cursor: str | None = None, limit: int = 50) -> RunPage:
    """Runs, newest first: of one workflow, in one state. A page may be short, or empty, and not be the last."""
    found: builtins.list[RunFacts] = []
    before, last = _cursor(cursor)
    step = limit if state is None else SCANNED
    workflows = get_engine().workflows
    pairs = workflows.newest(name, before=before, last=last, limit=step + 1)
    fresh = pairs[:step]
    for (run_id, at), facts in zip(fresh, workflows.facts_of([run_id for run_id, _ in fresh]), strict=True):
        before, last = at, run_id
        if facts is not None and state in (None, facts.state):
            found.append(facts)
            if len(found) == limit:
                break
    is_last = len(pairs) <= step and fresh[-1:] in ([], [(last, before)])
    return RunPage(found, None if is_last else f"{before}.{last}")


def node_counts(*, ended_within: timedelta = timedelta(days=1)) -> NodeCounts:
    """How many nodes wait for others in runs that go on, and how many were skipped in these and in those that ended
    within that time. Costs the same however many runs and nodes there are: of at most 500 of each."""
    workflows = get_engine().workflows
    return workflows.node_counts(workflows.server_now_ms() - round(ended_within.total_seconds() * 1000))


def nodes(run_id: str, since: int = 0, limit: int = 1000, *, live: bool = False) -> Sequence[NodeView]:
    """The nodes of a run by rank, parents first. RunNotFound.

    A node whose job has not ended is ``ready``; ``live``: its job is asked how it stands (``leased``, …).
    """
    engine = get_engine()
    if not since:
        engine.workflows.facts(run_id)
    found = engine.workflows.nodes(run_id, since, limit)
    return _asked(found) if live else found


def shown_facts(run: RunFacts) -> dict[str, Any]:
    """The JSON of a run in a list, as people may see it."""
    return {**run.as_dict(), "payload": shown_value("", run.payload)}


def first_failures(run_ids: Sequence[str]) -> Mapping[str, NodeView]:
    """Run → the first of its nodes that died or was cancelled; runs in which none has are left out."""
    return get_engine().workflows.first_failures(run_ids)


def document(run_id: str) -> dict[str, Any]:
    """The JSON of a run with all its nodes. RunNotFound."""
    engine = get_engine()
    facts = engine.workflows.facts(run_id)
    views = builtins.list(engine.workflows.all_nodes(run_id))
    return {
        **facts.as_dict(),
        "result": engine.workflows.results(run_id) if facts.is_over else None,
        "nodes": [view.as_dict() for view in _asked(views)],
    }


def shown_document(run_id: str) -> dict[str, Any]:
    """``document`` as people may see it: without what payload, results and errors hide. RunNotFound."""
    found, views = document(run_id), builtins.list(get_engine().workflows.all_nodes(run_id))
    errors = {view.key: view.error for view in shown_nodes(views)}
    return {
        **found,
        "payload": shown_value("", found["payload"]),
        "result": found["result"] and shown_results(found["result"], views),
        "nodes": [{**node, "error": errors.get(node["key"])} for node in found["nodes"]],
    }


def results(run_id: str) -> dict[str, Any]:
    """The result of a run: results by key of the nodes that nobody waits for and that succeeded. RunNotFound."""
    get_engine().workflows.facts(run_id)
    return get_engine().workflows.results(run_id)


def wait(run_id: str, timeout: float | timedelta | None = None) -> RunFacts:
    """Waits until the run has ended and answers it, however it ended. RunNotFound; JobTimeout after ``timeout``."""
    pauses, sleeper = Pauses(timeout), threading.Event()
    while not (facts := get(run_id)).is_over:
        sleeper.wait(pauses.next_or(partial(_not_ended, run_id)))
    return facts


async def await_(run_id: str, timeout: float | timedelta | None = None) -> RunFacts:  # noqa: ASYNC109 - as its twin
    """The async twin of ``wait`` (whose name with the prefix ``a`` is a word of Python's own)."""
    pauses = Pauses(timeout)
    while not (facts := await aget(run_id)).is_over:  # noqa: ASYNC110 - what is awaited happens in other processes
        await asyncio.sleep(pauses.next_or(partial(_not_ended, run_id)))
    return facts


def _not_ended(run_id: str, timeout: float) -> JobTimeout:
    return JobTimeout(f"Run {run_id} did not end in time.", fix="It goes on: wait again, or cancel it.")


def _deadline_ms(definition: Definition) -> int | None:
    """When a run that begins now is to be over; None where it has no limit."""
    if definition.timeout is None:
        return None
    return get_engine().run_control.server_now_ms() + round(definition.timeout * 1000)


def _asked(views: Sequence[NodeView]) -> Sequence[NodeView]:
    asked = [view.job for view in views if view.is_job and view.job]
    if not asked:
        return views
    states = dict(zip(asked, get_engine().jobs.get_many(asked), strict=True))
    return [
        msgspec.structs.replace(view, state=str(job.state))
        if view.is_job and (job := states.get(view.job or "")) is not None and job.state != JobState.READY
        else view
        for view in views
    ]


def _checked_id(run_id: str) -> str:
    if _ID.fullmatch(run_id):
        return run_id
    raise OptionInvalid(
        f"{shown(run_id)} cannot be the id of a run",
        fix="Use up to 150 letters, digits, '_', '.', ':' and '-', beginning with a letter or digit.",
    )


def _cursor(cursor: str | None) -> tuple[int | None, str]:
    if cursor is None:
        return None, ""
    at, _, run_id = cursor.partition(".")
    if not at.isascii() or not at.isdigit() or not run_id:
        raise OptionInvalid(f"{shown(cursor)} is no cursor of a list of runs", fix="Leave it out to begin anew.")
    return int(at), run_id


astart = twin(start, uses_database=True)
aget = twin(get)
alist = twin(list)
anode_counts = twin(node_counts)
anodes = twin(nodes)
adocument = twin(document)
ashown_document = twin(shown_document)
afirst_failures = twin(first_failures)
aresults = twin(results)
