"""The job that a schedule makes: the defaults of its type, over them what was set in the admin, over that its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from jobs.core.job import JobSpec, Unique, iso, moment
from jobs.core.payload import encode_any
from jobs.core.schedule.definition import Definition
from jobs.engine import Engine
from jobs.engine.schedules import firing_id
from jobs.exceptions import OptionInvalid, OutcomeUnknown, SchedulerError, StoreUnavailable
from jobs.registry import registry
from jobs.runtime import controlling
from jobs.runtime.relaying import Relay

OVERRIDABLE = ("pool", "priority", "max_retries", "timeout")


class Request(NamedTuple):
    """What is enqueued at a firing. Its ``spec`` has no fire time yet."""

    spec: JobSpec
    payload: bytes


def request(engine: Engine, definition: Definition) -> Request:
    """What a firing enqueues now. Raises SchedulerError where it can be no job: the type has changed, say.

    A type that this process does not know gets the defaults of ``@job``: its job waits for a worker that knows it.
    """
    name, arguments = definition.type_of_jobs, definition.payload_of_jobs
    if name in registry:
        job_type = registry.get(name)
        spec, payload = job_type.defaults, job_type.encode(arguments)
        if job_type.unique is not None:
            by = job_type.unique
            key = by.key(job_type.decode(payload))
            unique = Unique(key=key, until=by.until, on_duplicate=by.on_duplicate)
            spec = msgspec.structs.replace(spec, unique=unique)
    else:
        spec, payload = JobSpec(type=name), encode_any(name, arguments)
    if spec.durability != "memory":
        raise OptionInvalid(
            f'durability "{spec.durability}" is not available in this version', fix='Write durability="memory".'
        )
    if len(payload) > engine.settings.payload_limit:
        raise OptionInvalid(f"The payload has {len(payload)} bytes; {engine.settings.payload_limit} are allowed.")
    changes = _set(engine.types.get(name)) | _set(definition)
    return Request(msgspec.structs.replace(spec, schedule=definition.name, **changes), payload)


def live(engine: Engine, definition: Definition, job_ids: Iterable[str]) -> list[str]:
    """Those of a schedule's jobs that have not ended; of one that starts a workflow, whose runs have not."""
    ids = [*job_ids]
    jobs = engine.moving.followed(ids)
    found = [job.id for job in jobs if not job.is_terminal]
    if definition.workflow:  # a run has the id of the job that started it
        ids = [*dict.fromkeys([*ids, *(job.id for job in jobs)])]
        found += [run.id for run in engine.workflows.facts_of(ids) if run and not run.is_over and run.id not in found]
    return found


def stop(engine: Engine, definition: Definition, job_id: str) -> bool:
    """Asks for the end of a job, or of the run that it started; whether it has ended."""
    try:
        if definition.workflow and engine.workflows.find(job_id) is not None:
            at = iso(moment(engine.schedules.server_now_ms()))
            why = {"by": f"schedule {definition.name}", "at": at, "reason": "A later firing takes its place."}
            controlling.cancel(Relay(engine), job_id, why)
            return engine.workflows.facts(job_id).is_over
        return engine.jobs.cancel(job_id).is_terminal
    except (StoreUnavailable, OutcomeUnknown):
        raise
    except SchedulerError:  # it has ended, or is gone
        return True


def planned_job(engine: Engine, definition: Definition, nominal: int | None) -> str:
    """The id under which a firing would make its job, if it did so now; empty where it could not be told."""
    if nominal is None:
        return ""
    return firing_id(definition.name, nominal, engine.topology.route_for(pool_of(engine, definition)))


def pool_of(engine: Engine, definition: Definition) -> str:
    """The pool of its jobs."""
    name = definition.type_of_jobs
    declared = registry.get(name).pool if name in registry else "default"
    return definition.pool or engine.types.get(name).pool or declared


def _set(source: Any) -> dict[str, Any]:
    """The options that it decides."""
    return {name: value for name in OVERRIDABLE if (value := getattr(source, name)) not in (None, "")}
