"""Unique keys: which job holds one, until when, and how another takes it over. The claims are those of ``holders``."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count

from jobs.core.job import Job
from jobs.core.states import JobState
from jobs.engine.holders import Holders
from jobs.engine.jobs.refusals import key_taken
from jobs.engine.jobs.stored import StoredJobs
from jobs.exceptions import JobNotFound, OutcomeUnknown, SchedulerError, WrongState
from jobs.store.codec.bodies import decode_body
from jobs.store.connection import Store

_CLAIM_SECONDS = 6.0


class UniqueKeys:
    """See the module. A key is unique among the jobs of its type, over all pools."""

    def __init__(self, store: Store, jobs: StoredJobs) -> None:
        self._store = store
        self._jobs = jobs
        self._claims = Holders(store, "unique")

    def claim(self, name: str, job_id: str, on_duplicate: str, replaced: list[str] | None = None) -> Job | None:
        """Claims the key for the job to be; the job that holds it where one does. ``replaced``: gets the ids of jobs
        that were cancelled for it."""
        holder = self._claims.take(name, job_id)
        for _ in rounds():
            if holder == job_id:
                return None
            held_by = self._jobs.settled(holder)
            is_live = held_by is not None and self.holds(held_by, name)
            if held_by is not None and is_live:
                if on_duplicate != "replace" or not self._cancel_waiting(holder):
                    return held_by
                if replaced is not None and not held_by.is_terminal:
                    replaced.append(holder)
            if held_by is not None or self._jobs.void(holder):
                before, holder = holder, self._claims.take(name, job_id, expected=holder)
                if holder == job_id and held_by is not None and self._lives_again(held_by, name):
                    holder = self._claims.take(name, before, expected=job_id)
                    self.confirm([before, job_id])  # others may have gone by what we took, and gave back
        raise OutcomeUnknown("The unique key is fought over; nothing was created.", fix="Try again.")

    def reclaim(self, job_ids: list[str]) -> tuple[list[str], dict[str, SchedulerError | None]]:
        """Dead and cancelled jobs gave up their unique key: they take it again. All that have a key, whatever their
        state, and of those that did not get it who has it. Of several with the same key the first gets it."""
        keyed: list[str] = []
        taken: dict[str, str] = {}
        refused: dict[str, SchedulerError | None] = {}
        for job in self._jobs.get_many(list(dict.fromkeys(job_ids))):
            if job is None or job.unique_key is None:
                continue
            keyed.append(job.id)
            if job.state not in (JobState.DEAD, JobState.CANCELLED):
                continue
            name = claim_name(job.type, job.unique_key)
            holder = None if name in taken else self.claim(name, job.id, "return")
            if name in taken or holder is not None:
                refused[job.id] = key_taken(holder.id if holder else taken[name], job.unique_key)
            elif self.holds(job, name, once_live=True):
                taken[name] = job.id
        return keyed, refused

    def confirm(self, job_ids: list[str]) -> dict[str, SchedulerError | None]:
        """Of jobs that live again: whether each still has its key. A producer that had found it dead may have taken it
        meanwhile. It looks again once it has it; so do we, and one of us sees the other. Who lost it is cancelled."""
        refused: dict[str, SchedulerError | None] = {}
        for job in self._jobs.get_many(job_ids) if job_ids else ():
            name = claim_name(job.type, job.unique_key) if job and job.unique_key else ""
            if job is None or not self.holds(job, name) or (holder := self.claim(name, job.id, "return")) is None:
                continue
            with suppress(JobNotFound, WrongState):
                self._jobs.decide("job_cancel", job.id, only_waiting="")
            refused[job.id] = key_taken(holder.id, job.unique_key or "")
        return refused

    def drop(self, name: str, job_id: str) -> None:
        """Gives the key free if the claim on it is this job's."""
        self._claims.drop(name, job_id)

    def holds(self, job: Job, name: str, *, once_live: bool = False) -> bool:
        """Whether the job still keeps others away from the key that is claimed under this name, or will when it is
        live again."""
        if job.unique_key is None or claim_name(job.type, job.unique_key) != name:
            return False
        until, has_ended = self._until(job.id), job.is_terminal and not once_live
        if until == "started":
            return not has_ended and job.started_at is None and not job.attempts
        if isinstance(until, (int, float)):
            return self._jobs.server_now_ms() < job.created_at.timestamp() * 1000 + until * 1000
        return not has_ended

    def _lives_again(self, held_by: Job, name: str) -> bool:
        """Whether the job that held the key, and had ended, was resubmitted before the key was taken over."""
        job = None if held_by.state is JobState.SUCCEEDED else self._jobs.find(held_by.id)
        return job is not None and not job.is_terminal and self.holds(job, name)

    def _until(self, job_id: str) -> str | float | None:
        """How long the job's unique key holds; None where it has none."""
        route = self._jobs.route_of(job_id)
        keys = self._jobs.keys(route) if route else None
        raw = self._store.read(lambda client: client.hget(keys.bodies, job_id)) if keys else None
        try:
            unique = decode_body(raw).extras.get("unique") if raw else None
        except ValueError:
            return None
        return unique[1] if unique else None

    def _cancel_waiting(self, job_id: str) -> bool:
        try:
            self._jobs.decide("job_cancel", job_id, only_waiting="1")
        except WrongState as error:
            return error.state not in (JobState.LEASED, None)
        except JobNotFound:
            return True
        return True


def claim_name(type_name: str, key: str) -> str:
    """The name under which a unique key is claimed."""
    return f"{type_name}\0{key}"


def rounds() -> Iterator[int]:
    """Rounds of a fight over a name, for a few seconds; who lost one waits a moment, so that the winner can finish."""
    deadline = time.monotonic() + _CLAIM_SECONDS
    for number in count():
        yield number
        if time.monotonic() > deadline:
            return
        time.sleep(random.uniform(0, min(0.002 * number, 0.05)))
