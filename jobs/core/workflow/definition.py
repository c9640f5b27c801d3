"""What a workflow is, as it is written down: nodes, each a job to be, and the edges that it waits for.

The structs are the JSON of a workflow field by field; builder, file and admin all make them. That they hold together
is said by ``checks``.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from jobs.core.options import HIGHEST_PRIORITY, LONGEST_TEXT, LOWEST_PRIORITY

KEY_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_:-]{0,99}$"
"""Keys of nodes. No dot: ``extract.result.rows`` must read in one way only."""

RUN = "run"
"""What templates call the run itself; no node can have this key."""


class Edge(StrEnum):
    """What a node waits for in a parent. The value is the field that says so."""

    SUCCESS = "on_success"  # also written depends_on
    FAILURE = "on_failure"  # dead, its retries spent, or cancelled
    COMPLETE = "on_complete"  # any end, skipped too


Keys = tuple[str, ...]
Whole = Annotated[int, Meta(ge=1)]


class Retries(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How long failures of a node wait: the backoffs of Python as an object."""

    kind: Literal["exponential", "linear", "fixed"]
    base: float | UnsetType = UNSET
    step: float | UnsetType = UNSET
    seconds: float | UnsetType = UNSET
    cap: float | UnsetType = UNSET
    jitter: float | UnsetType = UNSET


class Node(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One job of a workflow: what to run, after what, and with which options of a job."""

    key: Annotated[str, Meta(pattern=KEY_PATTERN, description="Its name within the workflow; 'run' is taken.")]
    type: Annotated[str, Meta(min_length=1, description="Name of the job type.")]
    payload: Annotated[
        dict[str, Any],
        Meta(
            description='Arguments by name. {"$from": "extract.result.rows"} anywhere in it stands for a value of a '
            'parent (result, error, state), {"$from": "run.payload.day"} for one of the run\'s payload; "default" '
            'beside it for where there is none. {"$literal": …} is taken as it stands.'
        ),
    ] = {}
    depends_on: Annotated[Keys, Meta(description="Parents that must succeed. The same as on_success.")] = ()
    on_success: Annotated[Keys, Meta(description="Parents that must succeed.")] = ()
    on_failure: Annotated[Keys, Meta(description="Parents that must die, retries spent, or be cancelled.")] = ()
    on_complete: Annotated[Keys, Meta(description="Parents that must end, in whatever way; skipped counts.")] = ()
    join: Annotated[
        Literal["all", "any"] | Whole, Meta(description="How many of the parents: all, any one, or at least a number.")
    ] = "all"
    always: Annotated[bool, Meta(description="Runs in a cancelled run too: for cleaning up.")] = False

    pool: Annotated[str | None, Meta(description="Else the job type's.")] = None
    priority: Annotated[
        Annotated[int, Meta(ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY)] | None, Meta(description="Higher runs first.")
    ] = None
    max_retries: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="Failures that are retried.")] = None
    timeout: Annotated[float | UnsetType | None, Meta(description="Seconds of one attempt; null = no limit.")] = UNSET
    backoff: Annotated[Retries | None, Meta(description="How long a failure waits for its retry.")] = None
    delay: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Seconds from its release to its start.")
    ] = None
    tags: Keys = ()
    meta: Annotated[dict[str, str], Meta(description="A small map of texts, searchable.")] = {}
    concurrency_key: Annotated[str | None, Meta(description="For the job type's concurrency limit.")] = None
    rate_key: Annotated[str | None, Meta(description="For the job type's rate limit.")] = None
    durability: Literal["memory", "replicated", "disk", "database"] | None = None

    def edges(self) -> Iterator[tuple[str, Edge]]:
        """(parent, what is waited for), as written: a parent may come twice."""
        for field, kind in EDGES.items():
            for parent in getattr(self, field):
                yield parent, kind

    def options(self) -> dict[str, Any]:
        """The options of a job that are set, as JSON values."""
        fields = msgspec.to_builtins(self)
        return {name: fields[name] for name in OPTIONS if name in fields}


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A whole workflow."""

    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT, description="What people call it.")]
    nodes: Annotated[tuple[Node, ...], Meta(min_length=1)]

    def as_dict(self) -> dict[str, Any]:
        """Its JSON; what has its default is left out."""
        document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return document


EDGES = {"depends_on": Edge.SUCCESS, **{kind.value: kind for kind in Edge}}
"""Field of a node → what it waits for in the parents that are named there."""

OPTIONS = (
    "pool",
    "priority",
    "max_retries",
    "timeout",
    "backoff",
    "delay",
    "tags",
    "meta",
    "concurrency_key",
    "rate_key",
    "durability",
)
"""Fields of a node that are options of its job."""
