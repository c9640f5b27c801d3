"""Writes the history of this process: every lease verb of the engine and every run of a handler, before and after.

Where to and as whom is in the environment: ``FAULTS_HISTORY`` and ``FAULTS_PROC``.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jobs.core.context import Context
from jobs.engine.leases import Leases
from jobs.engine.limits import Limits
from jobs.exceptions import SchedulerError
from tests.faults import seeded_bugs
from tests.faults.history import History

CLAIMS = {"lease", "wait_and_lease", "recall"}
"""Verbs that bring jobs."""

Facts = dict[str, Any]

_histories: dict[int, History] = {}


def history() -> History:
    """This process's own, also after a fork."""
    pid = os.getpid()
    if pid not in _histories:
        _histories[pid] = History(Path(os.environ["FAULTS_HISTORY"]), os.environ.get("FAULTS_PROC", "process"))
    return _histories[pid]


def install() -> None:
    """Wraps the verbs. Each wrapper says what was asked before the call, and what was answered after it."""
    if "FAULTS_HISTORY" not in os.environ:
        return
    if bug := os.environ.get("FAULTS_BUG"):
        seeded_bugs.PROCESS_BUGS[bug].plant()
    for name, describe in (
        ("lease", _lease),
        ("wait_and_lease", _wait_and_lease),
        ("recall", _recall),
        ("renew", _renew),
        ("complete", _endings),
        ("fail", _failures),
        ("release", _releases),
        ("crash", _releases),
        ("park", _releases),
    ):
        setattr(Leases, name, _observed("claim" if name in CLAIMS else name, getattr(Leases, name), describe))
    setattr(Limits, "throttle", _observed("park", Limits.throttle, _throttled))  # noqa: B010 - it is a method


Described = tuple[Facts, Callable[[Any], Facts]]


def _observed(event: str, verb: Callable[..., Any], describe: Callable[..., Described]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def call(self: Leases, *args: Any, **kwargs: Any) -> Any:
        args = tuple(list(value) if isinstance(value, Iterator) else value for value in args)
        asked, answered = describe(*args, **kwargs)
        op = history().write(event, "invoke", **asked)
        try:
            reply = verb(self, *args, **kwargs)
        except SchedulerError as error:
            history().write(event, "unknown", op, outcome=error.code)
            raise
        history().write(event, "ok", op, **answered(reply))
        return reply

    return call


def _lease(route: Any, *, worker: str, token: str, limit: int, lease_ms: int) -> Described:
    def answered(reply: Any) -> Facts:
        return {
            "server_ms": reply.now,
            "facts": {"fences": {job.id: job.fencing_token for job in reply.jobs}},
        }

    return {"pool": route.pool, "token": token, "lease_ms": lease_ms, "facts": {"worker": worker}}, answered


def _wait_and_lease(route: Any, timeout: float, **asked: Any) -> Described:
    return _lease(route, **asked)


def _recall(route: Any, *, worker: str, token: str) -> Described:
    """When the lease was given is not known any more, and so nothing is said of how long it holds."""
    return _lease(route, worker=worker, token=token, limit=0, lease_ms=0)


def _renew(route: Any, leases: Iterable[Any], lease_ms: int) -> Described:
    def answered(reply: Any) -> Facts:
        return {
            "server_ms": reply.now,
            "facts": {"lost": [id for id, _ in reply.lost], "ended": [id for id, _ in reply.ended]},
        }

    return {"pool": route.pool, "lease_ms": lease_ms, "facts": {"leases": [list(lease) for lease in leases]}}, answered


def _endings(route: Any, items: Iterable[Any]) -> Described:
    return _by_token(route, {item.id: item.token for item in items})


def _failures(route: Any, items: Iterable[Any]) -> Described:
    items = list(items)
    delays = {item.id: item.delay_ms for item in items if item.outcome in {"retry", "snooze"}}
    return _by_token(route, {item.id: item.token for item in items}, delays=delays)


def _releases(route: Any, leases: Iterable[Any], **options: Any) -> Described:
    return _by_token(route, {lease[0]: lease[1] for lease in leases}, **options)


def _throttled(route: Any, leases: Iterable[Any]) -> Described:
    asked, answered = _releases(route, leases)
    return asked, lambda places: answered(["ready" if place else "lost" for _, place in places])


def _by_token(route: Any, tokens: dict[str, str], **facts: Any) -> Described:
    ids = list(tokens)

    def answered(answers: list[str]) -> Facts:
        return {"facts": {"answers": dict(zip(ids, answers, strict=True))}}

    return {"pool": route.pool, "facts": {"tokens": tokens, **facts}}, answered


def step(ctx: Context, *limits: str) -> None:
    """The handler is at work and its lease holds, at the moment that is written down; else it raises.

    The moment is taken before the lease is asked for: a process that is frozen in between claims nothing for later.
    """
    at_ns = time.monotonic_ns()
    ctx.raise_if_cancelled()
    facts = {"at_ns": at_ns, "run": f"{ctx.id} {ctx.fencing_token}", "limits": limits}
    history().write("step", "invoke", facts=facts)


@contextmanager
def running(ctx: Context, key: str) -> Iterator[None]:
    """One run of a handler: its start, and how it ended if it lived to the end."""
    written = history()
    op = written.write(
        "run", "invoke", job=ctx.id, key=key, attempt=ctx.attempt, fence=ctx.fencing_token, pool=ctx.pool
    )
    try:
        yield
    except BaseException as error:
        written.write("run", "ok", op, outcome=f"raised {type(error).__name__}")
        raise
    written.write("run", "ok", op, outcome="returned")
