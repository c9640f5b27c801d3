"""What an enqueue answers: enough to show, to keep, and to ask again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec

from jobs.api import jobs
from jobs.core.job import Enqueued, Job, iso


class JobHandle(msgspec.Struct, kw_only=True, gc=False):
    """A job that was enqueued, as it was then. ``refresh()`` brings ``state`` up to date.

    ``existing``: the job was there before (its unique key was taken). Enqueued with ``on_commit`` and not committed
    yet, a handle has the state ``"uncommitted"``: there is no such job until then.
    """

    id: str
    type: str
    pool: str
    state: str
    run_at: datetime | None = None
    existing: bool = False

    def refresh(self) -> Job:
        """The whole job as it is now; takes over its state. JobNotFound."""
        return self._seen(jobs.get_job(self.id))

    def wait(self, timeout: float | timedelta | None = None) -> Job:
        """The job once it has ended, however it ended. JobTimeout after ``timeout`` seconds."""
        return self._seen(jobs.wait(self.id, timeout))

    def cancel(self) -> Job:
        """Ends it if it waits, asks it to stop if it runs. WrongState if it has ended."""
        return self._seen(jobs.cancel(self.id))

    async def arefresh(self) -> Job:
        return self._seen(await jobs.aget_job(self.id))

    async def await_(self, timeout: float | timedelta | None = None) -> Job:  # noqa: ASYNC109 - the arguments of its twin
        return self._seen(await jobs.await_(self.id, timeout))

    async def acancel(self) -> Job:
        return self._seen(await jobs.acancel(self.id))

    def as_dict(self) -> dict[str, Any]:
        """The JSON of an enqueue: the first five fields of a job, and ``existing``."""
        return {
            "id": self.id,
            "type": self.type,
            "pool": self.pool,
            "state": self.state,
            "run_at": iso(self.run_at),
            "existing": self.existing,
        }

    def settle(self, made: Enqueued) -> None:
        """Takes over what the engine made of the request."""
        self.id, self.pool, self.state = made.id, made.pool, made.state
        self.run_at, self.existing = made.run_at, made.existing

    def _seen(self, job: Job) -> Job:
        self.state, self.run_at = job.state.value, job.run_at
        return job


def handle_of(made: Enqueued) -> JobHandle:
    return JobHandle(
        id=made.id, type=made.type, pool=made.pool, state=made.state, run_at=made.run_at, existing=made.existing
    )
