"""Workflows: whether one can run, runs of them, and those that are stored."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jobs.api.run_comparison import Comparison, acompare, compare
from jobs.api.workflow_checks import Document, avalidate, validate
from jobs.api.workflow_control import (
    Waiting,
    aapprove,
    acancel,
    apause,
    apermission_to_decide,
    approve,
    areject,
    aresume,
    aretry,
    aretry_plan,
    asignal,
    askip,
    awaiting,
    cancel,
    pause,
    permission_to_decide,
    reject,
    resume,
    retry,
    retry_plan,
    signal,
    skip,
    waiting,
)
from jobs.api.workflow_runs import (
    RunPage,
    adocument,
    afirst_failures,
    aget,
    alist,
    anode_counts,
    anodes,
    aresults,
    ashown_document,
    astart,
    await_,
    document,
    first_failures,
    get,
    list,
    node_counts,
    nodes,
    results,
    shown_document,
    shown_facts,
    start,
    wait,
)
from jobs.core.workflow import NodeView, RunFacts
from jobs.engine.workflows import NodeCounts
from jobs.runtime.controlling import RetryPlan

if TYPE_CHECKING:
    from jobs.api.workflow_definitions import *  # noqa: F403

__all__ = [
    "Comparison",
    "Document",
    "NodeCounts",
    "NodeView",
    "RetryPlan",
    "RunFacts",
    "RunPage",
    "Waiting",
    "aapprove",
    "acancel",
    "acompare",
    "adocument",
    "afirst_failures",
    "aget",
    "alist",
    "anode_counts",
    "anodes",
    "apause",
    "apermission_to_decide",
    "approve",
    "areject",
    "aresults",
    "aresume",
    "aretry",
    "aretry_plan",
    "ashown_document",
    "asignal",
    "askip",
    "astart",
    "avalidate",
    "await_",
    "awaiting",
    "cancel",
    "compare",
    "document",
    "first_failures",
    "get",
    "list",
    "node_counts",
    "nodes",
    "pause",
    "permission_to_decide",
    "reject",
    "results",
    "resume",
    "retry",
    "retry_plan",
    "shown_document",
    "shown_facts",
    "signal",
    "skip",
    "start",
    "validate",
    "wait",
    "waiting",
]


def __getattr__(name: str) -> Any:
    # Stored workflows are rows, and models can be imported only when Django is set up; the rest works before.
    if not name.startswith("_"):
        stored = import_module("jobs.api.workflow_definitions")
        if name in stored.__all__:
            return getattr(stored, name)
    raise AttributeError(f"module 'jobs.api.workflows' has no attribute {name!r}")
