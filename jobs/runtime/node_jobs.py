"""The job that a node becomes: the defaults of its type, over them what was set for it, then the node's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from jobs.core.job import JobSpec, LeasedJob
from jobs.core.payload import encode_any
from jobs.core.workflow import Ended, Node, TemplateError, render, spec_options
from jobs.engine import Engine
from jobs.exceptions import PayloadInvalid, PayloadTooLarge
from jobs.registry import registry

OVERRIDABLE = ("pool", "priority", "max_retries", "timeout")
"""What an operator may set for a type."""

FIELDS = frozenset(JobSpec.__struct_fields__)


def spec_of(engine: Engine, run_id: str, node: Node) -> JobSpec:
    """How the node's job is enqueued. A type that this process does not know gets the defaults of ``@job``: its job
    waits for a worker that knows it."""
    known = node.type in registry
    spec = registry.get(node.type).defaults if known else JobSpec(type=node.type)
    overrides = engine.types.get(node.type)
    changes = {name: value for name in OVERRIDABLE if (value := getattr(overrides, name)) is not None}
    chosen = spec_options(node)
    changes |= {name: value for name, value in chosen.items() if name in FIELDS}
    if "delay" in chosen:
        changes["delay_ms"] = chosen["delay"]
    return msgspec.structs.replace(spec, **changes, workflow_run=run_id, node=node.key)


def payload_of(engine: Engine, node: Node, run_payload: Any, parents: Mapping[str, Ended]) -> bytes:
    """Its payload, with values in place of what was to be taken from the run and from parents.

    Raises PayloadInvalid where it does not fit the type, or a value is not there; PayloadTooLarge.
    """
    try:
        arguments = render(node.payload, run_payload, parents)
    except TemplateError as error:
        raise PayloadInvalid(f"{node.type}: {error}", fix=error.fix) from None
    known = node.type in registry
    payload = registry.get(node.type).encode(arguments) if known else encode_any(node.type, arguments)
    limit = engine.settings.payload_limit
    if len(payload) > limit:
        raise PayloadTooLarge(
            f"{node.type}: the payload has {len(payload)} bytes; the limit is {limit}",
            fix="Pass a reference to where the data is, or raise SCHEDULER['PAYLOAD_LIMIT'].",
        )
    return payload


def parents_of(engine: Engine, lease: LeasedJob) -> dict[str, Ended]:
    """How the parents of the node that this job is have ended, by key. Asks the store."""
    run_id, key = lease.extras["workflow_run"], lease.extras["node"]
    view = engine.workflows.node(run_id, key)
    return {} if view is None else engine.workflows.parents(run_id, (parent for parent, _ in view.node.edges()))
