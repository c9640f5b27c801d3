"""What people do to runs of workflows: stopping, pausing, retrying, and ending what waits in them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

import msgspec

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.core import options
from jobs.core.job import iso, moment
from jobs.core.payload import dumps
from jobs.core.states import JobState
from jobs.core.wording import did_you_mean, shown
from jobs.core.workflow import SKIPPED, Definition, Kind, Node, NodeView, RunFacts
from jobs.engine import get_engine
from jobs.exceptions import (
    JobNotFound,
    OptionInvalid,
    PayloadInvalid,
    PayloadTooLarge,
    WorkflowInvalid,
    WrongState,
)
from jobs.runtime import controlling
from jobs.runtime.controlling import RetryPlan
from jobs.runtime.relaying import Relay

OPERATE = "jobs.operate"
"""Permission that decides approvals which name none."""


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """A node that waits for a signal or a person. Times are Unix milliseconds of the server."""

    key: str
    kind: str
    """``signal`` or ``approval``."""
    what: str
    """The name of the signal, or the question."""
    since_ms: int
    until_ms: int | None
    """When its time is over; None: never."""
    permission: str | None
    """Who may decide; None: a signal, which whoever may operate may send."""
    payload: dict[str, Any]
    """What the workflow says beside it, as it is written: templates are not filled in."""

    def as_dict(self) -> dict[str, Any]:
        """Its JSON."""
        return {
            "key": self.key,
            "kind": self.kind,
            "what": self.what,
            "since": iso(moment(self.since_ms)),
            "until": iso(moment(self.until_ms)) if self.until_ms else None,
            "permission": self.permission,
            "payload": self.payload,
        }


def cancel(run_id: str, *, reason: str = "", by: str | None = None) -> RunFacts:
    """Stops a run and answers how it stands: what waits never starts, running jobs are asked to stop, nodes that are
    marked ``always`` run. It has ended when all of that has. RunNotFound; WrongState where it is over."""
    facts = _facts(by, reason)
    if controlling.cancel(_relay(), run_id, facts):
        audit.record("workflow_run.cancel", run_id, reason=facts["reason"], after={"cancelled": facts})
    return get_engine().workflows.facts(run_id)


def pause(run_id: str, *, reason: str = "", by: str | None = None, wait: float | None = None) -> RunFacts:
    """Nothing new of the run starts from when this returns, until it is resumed; what runs goes on. RunNotFound,
    WrongState.

    That takes until workers have begun or handed back what they had taken: moments, or the rest of a lease where a host
    is dead. ``wait``: no longer than so many seconds; what was on its way may then still start.
    """
    facts = _facts(by, reason)
    if controlling.pause(_relay(), run_id, facts, wait=wait):
        audit.record("workflow_run.pause", run_id, reason=facts["reason"], after={"paused": facts})
    return get_engine().workflows.facts(run_id)


def resume(run_id: str) -> RunFacts:
    """The run goes on. No error where it was not paused. RunNotFound."""
    if controlling.resume(_relay(), run_id):
        audit.record("workflow_run.resume", run_id, after={"paused": None})
    return get_engine().workflows.facts(run_id)


def retry_plan(run_id: str, node: str | None = None) -> RetryPlan:
    """What ``retry`` would run again; nothing is changed. Errors as there."""
    return controlling.retry_plan(get_engine(), run_id, node)


def retry(run_id: str, node: str | None = None) -> RunFacts:
    """Runs a part of a run again and answers how it stands.

    Without ``node``: the jobs of all nodes that failed or were cancelled; what was skipped because of them waits for
    them again, and what has run stays. With it: that node, and everything that comes after it as if it had never run.
    A cancelled run goes on. RunNotFound, WorkflowInvalid (no such node), WrongState (nothing to run again, or something
    that comes after the node still runs).
    """
    controlling.retry(_relay(), run_id, node)
    audit.record("workflow_run.retry", run_id, after={"from": node or "what failed"})
    return get_engine().workflows.facts(run_id)


def signal(run_id: str, name: str, payload: Any = None) -> int:
    """Tells a run that something has happened: nodes that wait for this signal end with ``payload`` (JSON) as their
    result; how many did. It is kept, and ends those that come to wait for it later at once. The last one sent counts.

    RunNotFound; WrongState where the run is over; OptionInvalid where nothing in the run waits for such a signal, ever;
    PayloadInvalid, PayloadTooLarge.
    """
    value = _checked(payload, "payload of the signal")
    engine = get_engine()
    engine.workflows.facts(run_id)
    known = set(_signals([view.node for view in engine.workflows.all_nodes(run_id)]))
    if name not in known:
        raise OptionInvalid(f"No node of run {run_id} waits for a signal {shown(name)}", fix=did_you_mean(name, known))
    engine.workflows.touch(run_id)
    ended = engine.run_control.signal(run_id, name, value)
    audit.record("workflow_run.signal", run_id, after={"signal": name, "ended": ended})
    _relay().pursue(run_id)
    return ended


def approve(run_id: str, node: str, *, by: str | None = None, comment: str = "") -> RunFacts:
    """A person says yes: the node succeeds, with ``{"approved": true, "by", "comment", "at"}`` as its result.

    Whether this person may is for the caller to ask (``waiting`` says which permission). RunNotFound; WorkflowInvalid:
    no such node, or no approval; WrongState: it does not wait.
    """
    return _decided(run_id, node, by, comment, is_approved=True)


def reject(run_id: str, node: str, *, by: str | None = None, comment: str = "") -> RunFacts:
    """A person says no: the node is dead, with an error ``Rejected`` that says who and why. As ``approve``."""
    return _decided(run_id, node, by, comment, is_approved=False)


def skip(run_id: str, node: str, *, result: Any = None, reason: str = "", by: str | None = None) -> RunFacts:
    """Counts a node as succeeded without running it, and answers how the run stands: what comes after it goes on.

    It may wait, be under way (its job is asked to stop, and nothing that it still returns counts), have failed or been
    skipped. ``result`` (JSON) is what its children find. Who skipped it and why stands in its ``error``, of type
    ``Skipped``. RunNotFound; WorkflowInvalid: no such node, or an approval, which is decided; WrongState: it has
    succeeded, is a group that has opened (skip nodes in it), is just being started, or the run was cancelled;
    PayloadInvalid, PayloadTooLarge.
    """
    engine = get_engine()
    view = _skippable(run_id, node)
    facts = _facts(by, reason)
    value = _checked(result, "result of the node")
    if view.is_job and view.job:
        _wait_for_its_job(view.job, node)
    try:
        controlling.skip(_relay(), run_id, node, value, _skipping(facts))
    except WrongState as error:
        raise WrongState(_why_not_skipped(node, error.state), state=error.state) from None
    audit.record(
        "workflow_run.skip", run_id, reason=facts["reason"], before={"state": view.state}, after={"node": node}
    )
    return engine.workflows.facts(run_id)


def waiting(run_id: str) -> builtins.list[Waiting]:
    """The nodes of a run that wait for a signal or a person now. RunNotFound."""
    engine = get_engine()
    engine.workflows.facts(run_id)
    views = engine.workflows.nodes_at(run_id, engine.run_control.waiting(run_id))
    return [_waiting(view) for view in views if view.state == JobState.READY]


def permission_to_decide(run_id: str, node: str) -> str:
    """The permission that deciding an approval takes, whether it waits already or not. Errors as ``approve``."""
    return _approval(run_id, node).permission or OPERATE


def _approval(run_id: str, key: str) -> Node:
    engine = get_engine()
    engine.workflows.facts(run_id)
    view = engine.workflows.node(run_id, key)
    if view is None or view.node.kind is not Kind.APPROVAL:
        what = "is no node" if view is None else f"is a {view.node.kind}, and no approval"
        raise WorkflowInvalid(f"{key!r} {what} of run {run_id}.", fix="`workflows show` lists its nodes.")
    return view.node


def _skippable(run_id: str, key: str) -> NodeView:
    engine = get_engine()
    engine.workflows.facts(run_id)
    view = engine.workflows.node(run_id, key)
    if view is None:
        raise WorkflowInvalid(f"{key!r} is no node of run {run_id}.", fix="`workflows show` lists its nodes.")
    if view.kind is Kind.APPROVAL:
        raise WorkflowInvalid(f"Node {key!r} asks a person, and cannot be skipped.", fix="Approve or reject it.")
    return view


def _wait_for_its_job(job_id: str, node: str) -> None:
    """A job that is fixed and not there yet would run all the same."""
    try:
        get_engine().jobs.get(job_id)
    except JobNotFound:
        raise WrongState(
            f"Node {node!r} is just being started.", state=JobState.READY, fix="Skip it in a moment."
        ) from None


def _skipping(who: Mapping[str, Any]) -> dict[str, Any]:
    comment = f": {who['reason']}" if who["reason"] else ""
    return {"type": SKIPPED, "message": f"{who['by']} skipped it{comment}", "traceback": "", **who}


def _why_not_skipped(node: str, state: str | None) -> str:
    match state:
        case JobState.CANCELLED:
            return "The run was cancelled: what is left of it can be retried."
        case JobState.SUCCEEDED:
            return f"Node {node!r} has succeeded."
        case JobState.READY | JobState.DEAD:
            return f"Node {node!r} has opened into others: skip those of them that are in the way."
        case _:
            return f"The run is {state}."


def _waiting(view: NodeView) -> Waiting:
    node = view.node
    return Waiting(
        key=view.key,
        kind=str(node.kind),
        what=node.signal or node.approval or "",
        since_ms=view.released_at_ms,
        until_ms=None if node.limit is None else view.released_at_ms + round(node.limit * 1000),
        permission=(node.permission or OPERATE) if node.kind is Kind.APPROVAL else None,
        payload=node.payload,
    )


def _decided(run_id: str, node: str, by: str | None, comment: str, *, is_approved: bool) -> RunFacts:
    engine = get_engine()
    _approval(run_id, node)
    facts = _facts(by, comment)
    who = {"by": facts["by"], "comment": facts["reason"], "at": facts["at"]}
    engine.workflows.touch(run_id)
    try:
        if is_approved:
            engine.run_control.decide(run_id, node, result={"approved": True, **who})
        else:
            engine.run_control.decide(run_id, node, error=_rejection(who))
    except WrongState as error:
        is_early = error.state == JobState.BLOCKED
        message = "has not been asked yet" if is_early else f"is {error.state}: it was decided before"
        raise WrongState(f"Node {node!r} {message}.", state=error.state) from None
    verb = "approve" if is_approved else "reject"
    audit.record(f"workflow_run.{verb}", run_id, reason=facts["reason"], after={"node": node})
    _relay().pursue(run_id)
    return engine.workflows.facts(run_id)


def _rejection(who: Mapping[str, Any]) -> dict[str, Any]:
    comment = f": {who['comment']}" if who["comment"] else ""
    return {"type": "Rejected", "message": f"{who['by']} said no{comment}", "traceback": "", **who}


def _facts(by: str | None, reason: str) -> dict[str, Any]:
    """Who does it, when, and why."""
    return {
        "by": audit.actor().who if by is None else options.check_text("by", by),
        "at": iso(moment(get_engine().run_control.server_now_ms())),
        "reason": options.check_text("reason", reason, may_be_empty=True),
    }


def _checked(payload: Any, what: str) -> Any:
    """The value as JSON has it."""
    try:
        encoded = dumps(payload)
    except ValueError as error:
        raise PayloadInvalid(f"The {what}: {error}") from None
    limit = get_engine().settings.payload_limit
    if len(encoded) > limit:
        raise PayloadTooLarge(f"The {what} has {len(encoded)} bytes; the limit is {limit}")
    return msgspec.json.decode(encoded)


def _signals(nodes: Any) -> Any:
    for node in nodes:
        if node.signal:
            yield node.signal
        if isinstance(node.workflow, Definition):
            yield from _signals(node.workflow.nodes)


def _relay() -> Relay:
    return Relay(get_engine())


acancel = twin(cancel, uses_database=True)
apause = twin(pause, uses_database=True)
aresume = twin(resume, uses_database=True)
aretry = twin(retry, uses_database=True)
aretry_plan = twin(retry_plan)
asignal = twin(signal, uses_database=True)
aapprove = twin(approve, uses_database=True)
areject = twin(reject, uses_database=True)
askip = twin(skip, uses_database=True)
awaiting = twin(waiting)
apermission_to_decide = twin(permission_to_decide)
