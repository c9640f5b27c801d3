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

RUN, EACH = "run", "each"
"""What templates call the run itself, and the item of a node that is run for each of a list; no node can have these
keys."""


class Kind(StrEnum):
    """What a node is once it is released."""

    JOB = "job"
    EACH = "each"  # opens into one node for each item of a list
    WORKFLOW = "workflow"  # opens into the nodes of a sub-workflow
    SIGNAL = "signal"  # waits to be told something from outside
    APPROVAL = "approval"  # waits for a person's decision

    @property
    def is_group(self) -> bool:
        """Whether it has members: it ends when all of them have."""
        return self in (Kind.EACH, Kind.WORKFLOW)

    @property
    def is_wait(self) -> bool:
        """Whether somebody outside ends it."""
        return self in (Kind.SIGNAL, Kind.APPROVAL)

    @property
    def wait_word(self) -> str:
        """What people are told of a node that waits for somebody outside, in place of "ready"."""
        return "needs approval" if self is Kind.APPROVAL else "awaits a signal"


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
    """One step of a workflow: what to run or to wait for, after what, and with which options of a job.

    It has one of ``type``, ``workflow``, ``signal`` and ``approval``; ``each`` goes with the first two.
    """

    key: Annotated[
        str,
        Meta(
            # Without a length: members of groups are called group:key, however deep they lie.
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_:-]*$",
            description="Its name within the workflow; 'run' is taken.",
        ),
    ]
    type: Annotated[str, Meta(description="Name of the job type.")] = ""
    workflow: Annotated[
        Annotated[str, Meta(min_length=1)] | Definition | None,
        Meta(
            description="A workflow that runs as this node: a whole one, or the name of a stored one. Its nodes are "
            "called key:node, its run payload is this node's payload."
        ),
    ] = None
    signal: Annotated[
        Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)] | None,
        Meta(description="Waits for the signal of this name. Its payload is the result."),
    ] = None
    approval: Annotated[
        Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT)] | None,
        Meta(description="Waits until a person approves or rejects. The question that is asked."),
    ] = None
    each: Annotated[
        list[Any] | dict[str, Any] | UnsetType,
        Meta(
            description='A list, or {"$from": …} that stands for one: the node is run once for each item, called '
            'key:0, key:1, … {"$from": "each.item"} and {"$from": "each.index"} in the payload stand for it.'
        ),
    ] = UNSET
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
    timeout: Annotated[
        float | UnsetType | None,
        Meta(
            description="Seconds of one attempt; of a signal or an approval: how long it waits; of a sub-workflow: how "
            "long all of it may take. null = no limit."
        ),
    ] = UNSET
    on_timeout: Annotated[
        Literal["fail", "continue"],
        Meta(
            description="A signal or an approval whose time is over counts as dead (fail) or as succeeded (continue)."
        ),
    ] = "fail"
    permission: Annotated[
        str | None, Meta(description="Who may decide an approval: app.permission. Else jobs.operate is enough.")
    ] = None
    backoff: Annotated[Retries | None, Meta(description="How long a failure waits for its retry.")] = None
    delay: Annotated[
        Annotated[float, Meta(ge=0)] | None, Meta(description="Seconds from its release to its start.")
    ] = None
    tags: Keys = ()
    meta: Annotated[dict[str, str], Meta(description="A small map of texts, searchable.")] = {}
    concurrency_key: Annotated[str | None, Meta(description="For the job type's concurrency limit.")] = None
    rate_key: Annotated[str | None, Meta(description="For the job type's rate limit.")] = None
    durability: Literal["memory", "replicated", "disk", "database"] | None = None

    @property
    def kind(self) -> Kind:
        if self.each is not UNSET:
            return Kind.EACH
        if self.workflow is not None:
            return Kind.WORKFLOW
        if self.signal is not None:
            return Kind.SIGNAL
        return Kind.APPROVAL if self.approval is not None else Kind.JOB

    @property
    def label(self) -> str:
        """What it runs or waits for, in a word: the job type where there is one."""
        if isinstance(self.workflow, Definition):
            return self.workflow.name
        return self.type or self.workflow or ("signal" if self.signal else "approval")

    @property
    def limit(self) -> float | None:
        """Seconds from its release until its time is over, where it is no job: what it says itself, else what its
        sub-workflow says. None: for ever."""
        if self.kind is Kind.WORKFLOW and self.timeout is UNSET:
            return self.workflow.timeout if isinstance(self.workflow, Definition) else None
        return self.timeout if isinstance(self.timeout, int | float) else None

    def edges(self) -> Iterator[tuple[str, Edge]]:
        """(parent, what is waited for), as written: a parent may come twice."""
        for field, kind in EDGES.items():
            for parent in getattr(self, field):
                yield parent, kind

    def wanted(self, parents: int) -> int:
        """How many of so many parents must end as it waits for it."""
        if self.join == "all":
            return parents
        return min(1, parents) if self.join == "any" else int(self.join)

    def options(self) -> dict[str, Any]:
        """The options of a job that are set, as JSON values."""
        fields = msgspec.to_builtins(self)
        return {name: fields[name] for name in OPTIONS if name in fields}


class Definition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A whole workflow."""

    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_TEXT, description="What people call it.")]
    nodes: Annotated[tuple[Node, ...], Meta(min_length=1)]
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Seconds that a run may take: then it is cancelled. Paused time counts."),
    ] = None

    @property
    def size(self) -> int:
        """How many nodes a run begins with, those of sub-workflows counted: what lists open into comes later."""
        return len(self.nodes) + sum(node.workflow.size for node in self.nodes if isinstance(node.workflow, Definition))

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
