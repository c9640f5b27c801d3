"""What the producers of the fault runs ask for. Each handler writes down its start and its end."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
from contextlib import suppress

from jobs import Context, Dead, Fixed, job
from tests.faults.workload.observe import running, step

POOL = "faults"
QUICK_RETRY = Fixed(0.3)


@job("fault.nothing", pool=POOL, backoff=QUICK_RETRY)
def nothing(key: str, *, ctx: Context) -> str:
    with running(ctx, key):
        return key


@job("fault.work", pool=POOL, backoff=QUICK_RETRY)
def work(key: str, seconds: float, *, ctx: Context) -> str:
    """Takes its time, without holding anybody up."""
    with running(ctx, key):
        threading.Event().wait(seconds)
        return key


@job("fault.awork", pool=POOL, backoff=QUICK_RETRY)
async def work_async(key: str, seconds: float, *, ctx: Context) -> str:
    with running(ctx, key):
        await asyncio.sleep(seconds)
        return key


@job("fault.flaky", pool=POOL, backoff=QUICK_RETRY, max_retries=3)
def flaky(key: str, failures: int, *, ctx: Context) -> str:
    """Fails in its first ``failures`` attempts; more than its retries means that it must die."""
    with running(ctx, key):
        if ctx.lease.errors < failures:
            raise ValueError(f"failure {ctx.lease.errors + 1} of {failures}")
        return key


STEP_SECONDS = 0.01


@job("fault.stepped", pool=POOL, backoff=QUICK_RETRY)
def stepped(key: str, steps: int, *, ctx: Context) -> str:
    """Works in small steps, and before each of them sees whether it still may."""
    with running(ctx, key):
        for _ in range(steps):
            step(ctx, f"pool {POOL}")
            threading.Event().wait(STEP_SECONDS)
        return key


@job("fault.keyed", pool=POOL, backoff=QUICK_RETRY, concurrency=2)
def keyed(key: str, steps: int, *, ctx: Context) -> str:
    """The same, two at once for each concurrency key."""
    with running(ctx, key):
        for _ in range(steps):
            step(ctx, f"pool {POOL}", f"key {ctx.lease.extras['concurrency_key']}")
            threading.Event().wait(STEP_SECONDS)
        return key


@job("fault.doomed", pool=POOL)
def doomed(key: str, *, ctx: Context) -> str:
    with running(ctx, key):
        raise Dead("as asked")


if "FAULTS_KNOWS_STRANGERS" in os.environ:  # a newer version of the code, which some hosts run already

    @job("fault.stranger", pool=POOL)
    def stranger(key: str, *, ctx: Context) -> str:
        with running(ctx, key):
            return key


@job("fault.poison", pool=POOL, max_crashes=3)
def poison(key: str, padding: str = "", *, ctx: Context) -> str:
    """Kills the process that runs it, each time."""
    with running(ctx, key):
        os.kill(os.getpid(), signal.SIGKILL)
        return key


@job("fault.endless", pool=POOL, max_retries=0)
def endless(key: str, *, ctx: Context) -> None:
    """Computes for ever and asks nobody. An exception from outside ends it."""
    with running(ctx, key):
        while True:
            pass


@job("fault.deaf", pool=POOL, max_retries=0)
def deaf(key: str, *, ctx: Context) -> None:
    """The same, and whatever is raised in it, it goes on: only the end of its process ends it."""
    with running(ctx, key):
        while True:
            with suppress(Exception):
                while True:
                    pass


@job("fault.tick", pool=POOL)
def tick(number: int = 0) -> int:
    """What schedules start. It writes down nothing: its job says which firing it is."""
    return number


@job("fault.node", pool=POOL, max_crashes=1_000)
def node(fails: bool, seconds: float) -> None:
    """A node of a workflow. However often its worker dies: it ends as it was told."""
    threading.Event().wait(seconds)
    if fails:
        raise Dead("as asked")


@job("fault.greedy", pool=POOL)
def greedy(key: str, seconds: float, *, ctx: Context) -> str:
    """Holds the interpreter's lock: a C call that does not let go of it."""
    with running(ctx, key):
        ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))
        return key
