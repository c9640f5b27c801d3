"""Settings of a project that hears of everything: hooks, receivers and a middleware that write into a journal."""

from __future__ import annotations

import os
from typing import Any

from jobs import signals
from scheduler_project.settings import *  # noqa: F403

SCHEDULER = {
    **SCHEDULER,  # noqa: F405
    "MIDDLEWARE": [f"{__name__}.tenant", "jobs.middleware.Logging"],
    "ON_DEAD": f"{__name__}.dead",
    "ON_LONG_QUEUE": f"{__name__}.slow",
    "LONG_QUEUE_SECONDS": float(os.environ.get("LONG_QUEUE_SECONDS", "3600")),
}


def note(word: str, what: str) -> None:
    from tests.acceptance.handlers.jobs import journal

    journal(os.environ["HOOK_JOURNAL"], word, what)


def tenant(call: Any) -> Any:
    async def run(ctx: Any) -> Any:
        if ctx.meta.get("tenant") == "unknown":
            raise PermissionError("no such tenant")
        return await call(ctx)

    return run


async def dead(job: Any) -> None:
    note("dead", job.id)


def slow(pool: Any) -> None:
    note("slow", f"{pool.predicted_wait_seconds:.3f}")


def receiver_of(word: str) -> Any:
    def receive(job_id: str, **_: Any) -> None:
        note(word, job_id)

    return receive


RECEIVERS = {name: receiver_of(name) for name in signals.__all__}
for name, receive in RECEIVERS.items():
    getattr(signals, name).connect(receive)
