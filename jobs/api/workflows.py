"""Workflows: whether one can run, runs of them, and those that are stored."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jobs.api.workflow_checks import Document, avalidate, validate
from jobs.api.workflow_runs import (
    RunPage,
    adocument,
    aget,
    alist,
    anodes,
    aresults,
    astart,
    await_,
    document,
    get,
    list,
    nodes,
    results,
    start,
    wait,
)
from jobs.core.workflow import NodeView, RunFacts

if TYPE_CHECKING:
    from jobs.api.workflow_definitions import *  # noqa: F403

__all__ = [
    "Document",
    "NodeView",
    "RunFacts",
    "RunPage",
    "adocument",
    "aget",
    "alist",
    "anodes",
    "aresults",
    "astart",
    "avalidate",
    "await_",
    "document",
    "get",
    "list",
    "nodes",
    "results",
    "start",
    "validate",
    "wait",
]


def __getattr__(name: str) -> Any:
    # Stored workflows are rows, and models can be imported only when Django is set up; the rest works before.
    if not name.startswith("_"):
        stored = import_module("jobs.api.workflow_definitions")
        if name in stored.__all__:
            return getattr(stored, name)
    raise AttributeError(f"module 'jobs.api.workflows' has no attribute {name!r}")
