"""The run of a workflow, as the handler of one of its nodes sees it: ``ctx.workflow``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec


class Named(Protocol):
    """A job type, say."""

    @property
    def name(self) -> str: ...


class Grower(Protocol):
    """Who adds what a handler asks for."""

    def add_nodes(self, nodes: list[dict[str, Any]]) -> list[str]:
        """Adds nodes to the run that this job is a node of; their keys. Asks the store."""


class WorkflowRun(msgspec.Struct, frozen=True):
    """The run that a job is a node of. As text it is the id of the run."""

    id: str
    node: str
    """The key of this node."""
    host: Grower | None = None

    def __str__(self) -> str:
        return self.id

    def add(self, key: str, type: str | Named, payload: Mapping[str, Any] | None = None, **fields: Any) -> str:
        """Adds a node beside this one, at once; its key in the run.

        ``fields``: those of a node in JSON, as ``depends_on=["extract"]``, ``pool="background"``. A node that names no
        parents starts at once. The run waits for it; nodes that were there before do not. Adding a key that is there
        already changes nothing, so an attempt that is repeated may add the same again. WorkflowInvalid.
        """
        return self.add_many([{"key": key, "type": type, "payload": payload or {}, **fields}])[0]

    def add_many(self, nodes: Iterable[Mapping[str, Any]]) -> list[str]:
        """Adds nodes that are given as in JSON, in any order; their keys. Few round trips for many nodes."""
        if self.host is None:
            raise LookupError("The attempt is over, or runs outside a worker: nothing can be added to the run.")
        return self.host.add_nodes([_by_name(node) for node in nodes])

    async def aadd(self, key: str, type: str | Named, payload: Mapping[str, Any] | None = None, **fields: Any) -> str:
        """``add`` for async handlers: others run meanwhile."""
        return await asyncio.to_thread(self.add, key, type, payload, **fields)

    async def aadd_many(self, nodes: Iterable[Mapping[str, Any]]) -> list[str]:
        """``add_many`` for async handlers."""
        return await asyncio.to_thread(self.add_many, nodes)


def _by_name(node: Mapping[str, Any]) -> dict[str, Any]:
    """A job type by its name, and one parent as a list of one."""
    plain = dict(node)
    for name in ("depends_on", "on_success", "on_failure", "on_complete"):
        if isinstance(plain.get(name), str):
            plain[name] = [plain[name]]
    if "type" in plain and not isinstance(plain["type"], str):
        plain["type"] = plain["type"].name
    return plain
