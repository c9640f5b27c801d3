"""What people, and time, do to runs: the steps after the facts are written down. Each may be repeated by anybody."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from math import inf
from time import monotonic, sleep
from typing import Any, NamedTuple

from jobs.core.job import Route, iso, moment
from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow import PREPARING, NodeView, Redo, Run, RunFacts, Stood
from jobs.engine import Engine
from jobs.engine.run_control import Deadline
from jobs.engine.run_pauses import is_spread
from jobs.engine.workflows import CLAIM_MS
from jobs.exceptions import JobNotFound, RunNotFound, WorkflowInvalid, WrongState
from jobs.runtime.opening import set_limit
from jobs.runtime.relaying import Relay
from jobs.store.codec.ids import route_in

LOOK_SECONDS = 0.05
"""Between two looks whether the nodes that relays were handed have become jobs."""

PUT_OFF_MS = 1_000
"""A limit that cannot be met yet, since nodes are still being written down or handed out, is looked at again after as
long."""

OUT_OF_TIME = "Its time limit has passed."
WAITED_LONG_ENOUGH = "WaitTimedOut"


class RetryPlan(NamedTuple):
    """What a retry would do; keys of nodes, parents first."""

    again: tuple[str, ...]
    """They run again at once."""
    waiting: tuple[str, ...]
    """They wait again, and run when their parents have ended as they want. Some of them may have run before."""
    dropped: tuple[str, ...] = ()
    """Members of groups that open anew: what their list holds then is run."""


def retry_plan(engine: Engine, run_id: str, node: str | None = None) -> RetryPlan:
    """What ``retry`` would run again. WrongState says why nothing can be; RunNotFound."""
    run, _ = _as_it_stands(engine, run_id)
    try:
        redo, decision = run.redo(node), run.retry(node)
    except ValueError as error:
        raise _refused(engine, run_id, error) from None
    return RetryPlan(again=decision.released, waiting=decision.reopened, dropped=redo.dropped)


def retry(relay: Relay, run_id: str, node: str | None = None) -> None:
    """Has nodes run again: all that failed and what was skipped because of them, or one and all that comes after it."""
    engine = relay.engine
    run, views = _as_it_stands(engine, run_id)
    try:
        redo = run.redo(node)
    except ValueError as error:
        raise _refused(engine, run_id, error) from None
    # What comes last first: whoever dies over it leaves the node that all began with as one that has ended.
    changes = [
        *((views[key], "drop") for key in redo.dropped),
        *((views[key], "undo") for key in reversed(redo.undone)),
        *((views[key], "live") for key in redo.live),
        *((views[key], "again") for key in redo.again),
    ]
    engine.workflows.touch(run_id)
    engine.run_control.redo(run_id, {"node": node}, changes, None if node is None else _groups(views, redo))
    for key in redo.live:
        set_limit(engine, run_id, views[key].node, engine.run_control.server_now_ms())
    facts = engine.workflows.facts(run_id)
    if facts.deadline_ms is not None:  # its time begins anew
        limit = facts.deadline_ms - facts.created_at_ms
        engine.run_control.set_deadline(run_id, engine.run_control.server_now_ms() + limit)
    relay.pursue(run_id)


def _groups(views: Mapping[str, NodeView], redo: Redo) -> list[str]:
    """Those that a retry concerns."""
    concerned = (*redo.live, *redo.again, *redo.undone, *redo.dropped)
    return [key for key in concerned if views[key].node.kind.is_group]


def cancel(relay: Relay, run_id: str, reason: dict[str, Any]) -> bool:
    """Stops a run: what waits never starts, what runs is asked to stop, what is marked ``always`` runs. False: it was
    told so before."""
    relay.engine.workflows.touch(run_id)
    is_new = relay.engine.run_control.cancel(run_id, reason)
    relay.engine.run_pauses.spread(run_id)
    relay.advance(run_id)
    stop_jobs(relay, run_id)
    relay.pursue(run_id)  # last: until then the run is looked at soon, should we die over it
    return is_new


def pause(relay: Relay, run_id: str, facts: dict[str, Any], *, wait: float | None = None) -> bool:
    """From when this returns nothing of the run starts, until it goes on. False: it was paused before. RunNotFound,
    WrongState.

    That takes until relays have made the jobs that they were handed, and workers have begun or handed back what they
    had taken; ``wait``: no longer than so many seconds.
    """
    engine = relay.engine
    engine.workflows.touch(run_id)
    is_new = engine.run_control.pause(run_id, facts)
    stop_at = None if wait is None else monotonic() + wait
    spread_by = monotonic() + min(CLAIM_MS / 1000, inf if wait is None else wait)
    while not (is_spread := engine.run_pauses.spread(run_id)) and monotonic() < spread_by:
        sleep(LOOK_SECONDS)
    if is_spread:
        engine.news.tell("pauses", run_id)  # hosts hand back what they have not begun
        engine.run_pauses.settle(run_id, timeout=None if stop_at is None else max(0.0, stop_at - monotonic()))
        relay.pursue(run_id)
    return is_new


def resume(relay: Relay, run_id: str) -> bool:
    """A paused run goes on. False: it was not paused. RunNotFound."""
    relay.engine.workflows.facts(run_id)
    relay.engine.workflows.touch(run_id)
    was_paused = relay.engine.run_control.pause(run_id, None)
    relay.engine.run_pauses.spread(run_id)
    relay.pursue(run_id)
    return was_paused


def skip(relay: Relay, run_id: str, key: str, result: Any, note: dict[str, Any]) -> None:
    """Counts a node as succeeded without running it, with ``result`` for its children; its job, if it lives, is asked
    to stop."""
    relay.engine.workflows.touch(run_id)
    job_id = relay.engine.run_control.skip(run_id, key, result=result, note=note)
    _stop_skipped(relay, run_id, [job_id] if job_id else [])
    relay.pursue(run_id)


def _stop_skipped(relay: Relay, run_id: str, job_ids: Iterable[str]) -> None:
    """Asks the jobs of nodes that were skipped to stop: until that is written down, whoever looks at the run does."""
    for job_id in job_ids:
        _cancel_job(relay.engine, job_id)
        relay.engine.run_control.told_to_stop(run_id, job_id)
        relay.tell_of([job_id])  # its end is no news any more, and is crossed out


def stop_jobs(relay: Relay, run_id: str) -> None:
    """Asks the jobs of a cancelled run to stop, but for those of nodes that are marked ``always``."""
    if _ask_to_stop(relay, run_id):
        relay.engine.run_control.stopped(run_id)


def _ask_to_stop(relay: Relay, run_id: str, scopes: Collection[str] | None = None) -> bool:
    """Asks the jobs of these groups (None: of the whole run) to stop, but for ``always``; False where some may come
    that others were handed."""
    engine = relay.engine
    stored: dict[str, bool] = {}
    asked: defaultdict[Route, list[str]] = defaultdict(list)
    has_claims = engine.workflows.step(run_id, take=0).claimed > 0
    for view in engine.workflows.all_nodes(run_id):
        is_always = view.node.always or stored.get(view.scope, False)
        if view.node.kind.is_group:
            stored[view.key] = is_always
        is_meant = scopes is None or view.scope in scopes
        if is_meant and view.job is not None and not view.is_over and not is_always:
            _cancel_job(engine, view.job)
            if route := route_in(view.job):
                asked[route].append(view.job)
    for route, job_ids in asked.items():  # those that had not begun have ended, and that is news
        relay.tell(route, job_ids)
    return not has_claims


def finish(relay: Relay, facts: RunFacts) -> None:
    """Does what somebody has begun with this run and left: a pause or a stop that is half told, a retry that is half
    written down, a job that was to stop."""
    if not is_spread(facts):
        relay.engine.run_pauses.spread(facts.id)
    _stop_skipped(relay, facts.id, facts.to_stop)
    if facts.redo is not None:
        try:
            retry(relay, facts.id, facts.redo["node"])
        except WrongState:
            relay.engine.run_control.redo(facts.id, facts.redo, [], ())
    elif facts.cancelled is not None and not facts.is_over and not facts.stopped:
        relay.advance(facts.id)  # what the dead were handed becomes jobs, or could not be asked
        stop_jobs(relay, facts.id)


def meet(relay: Relay, deadline: Deadline) -> None:
    """Time is over: for a run, which is cancelled, for a sub-workflow in it, or for a node that waits."""
    is_met = True
    with suppress(RunNotFound, WrongState):  # it ended before
        if deadline.node:
            is_met = _end_node(relay, deadline)
        elif relay.engine.workflows.facts(deadline.run).state == PREPARING:
            is_met = False  # there is nothing to end yet
        else:
            cancel(relay, deadline.run, {"by": None, "at": iso(moment(deadline.at)), "reason": OUT_OF_TIME})
    if is_met:
        relay.engine.run_control.met(deadline)
    else:
        relay.engine.run_control.set_deadline(deadline.run, deadline.at + PUT_OFF_MS, deadline.node)


def _end_node(relay: Relay, deadline: Deadline) -> bool:
    """Whether there is nothing more to do about it."""
    view = relay.engine.workflows.node(deadline.run, deadline.node)
    if view is None or view.is_over:
        return True
    if view.node.kind.is_group:
        return _cut(relay, deadline, view)
    if view.node.kind.is_wait:
        _end_wait(relay, deadline, view)
    return True


def _cut(relay: Relay, deadline: Deadline, view: NodeView) -> bool:
    """Ends a sub-workflow as a cancel ends a run."""
    engine, run_id, key = relay.engine, deadline.run, deadline.node
    inside = [
        each.key
        for each in engine.workflows.all_nodes(run_id)
        if each.node.kind.is_group and each.key.startswith(f"{key}:")
    ]
    message = f"It was not done within {view.node.limit:g} s"
    engine.workflows.touch(run_id)
    engine.run_control.cut(run_id, key, inside, {"type": "JobTimeout", "message": message, "traceback": ""})
    relay.pursue(run_id)
    return _ask_to_stop(relay, run_id, {key, *inside})


def _end_wait(relay: Relay, deadline: Deadline, view: NodeView) -> None:
    relay.engine.workflows.touch(deadline.run)
    if view.node.on_timeout == "continue":
        relay.engine.run_control.decide(deadline.run, deadline.node, result={"timed_out": True})
    else:
        seconds = f"{view.node.limit:g}"
        what = "Nobody has decided" if view.node.approval else "No signal came"
        message = f"{what} within {seconds} s"
        error = {"type": WAITED_LONG_ENOUGH, "message": message, "traceback": ""}
        relay.engine.run_control.decide(deadline.run, deadline.node, error=error)
    relay.pursue(deadline.run)


def _cancel_job(engine: Engine, job_id: str) -> None:
    with suppress(JobNotFound, WrongState):  # it ended meanwhile
        engine.jobs.cancel(job_id)


def _as_it_stands(engine: Engine, run_id: str) -> tuple[Run, dict[str, NodeView]]:
    """The run as the rules see it, and its nodes by key."""
    facts = engine.workflows.facts(run_id)
    views = list(engine.workflows.all_nodes(run_id))
    there = [view for view in views if not _was_dropped(view)]
    run = Run.restored(map(_stood, there), is_cancelled=facts.cancelled is not None)
    return run, {view.key: view for view in views}


def _was_dropped(view: NodeView) -> bool:
    """A member of a group that has opened anew, and that is not in its list any more."""
    return view.is_released and view.state == JobState.SKIPPED


def _stood(view: NodeView) -> Stood:
    state = JobState(view.state)
    return Stood(view.node, view.scope, view.is_released, state if state in TERMINAL else None)


def _refused(engine: Engine, run_id: str, error: ValueError) -> WrongState | WorkflowInvalid:
    message = str(error)
    if message.startswith("there is no node"):
        return WorkflowInvalid(f"{message[:1].upper()}{message[1:]} in run {run_id}.")
    state = engine.workflows.facts(run_id).state
    return WrongState(f"The run cannot be retried so: {message}.", state=state, fix="`workflows show` lists its nodes.")
