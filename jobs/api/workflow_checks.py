"""Whether a workflow can run, as it stands and with the job types that are registered here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from jobs.api.asynchronous import twin
from jobs.conf import get_settings
from jobs.core import workflow
from jobs.core.workflow import Definition, Workflow
from jobs.runtime.node_checks import type_problems

Document = Workflow | Definition | Mapping[str, Any] | str | bytes
"""A workflow in any of its forms: written in Python, checked already, or as JSON."""


def validate(document: Document, *, allow_unknown: bool = False) -> Definition:
    """The definition that a workflow of Python or its JSON describes, once it is sure that it can run.

    Its nodes must hold together, their types be registered here (``allow_unknown``: for a process without the code of
    the handlers) and their payloads fit them as far as they are known before a run. Raises WorkflowInvalid, whose
    ``problems`` are all that is wrong of a kind, each with the keys of its nodes. Needs no server.
    """
    if isinstance(document, Workflow | Definition):
        document = document.as_dict()
    found = workflow.read(document, most_nodes=get_settings().workflow_nodes)
    workflow.refuse(problem for node in found.nodes for problem in type_problems(node, allow_unknown=allow_unknown))
    return found


def in_full(definition: Definition) -> Definition:
    """The definition with stored sub-workflows in place of their names. WorkflowInvalid: unknown, or one in itself."""
    if not any(workflow.stored_names(definition)):
        return definition
    stored = import_module("jobs.api.workflow_definitions")  # rows, which only a set-up Django has

    def look_up(name: str) -> Definition:
        found: Definition = stored.definition(name).definition
        return found

    full = workflow.in_full(definition, look_up)
    if full.size > get_settings().workflow_nodes:
        workflow.refuse([workflow.too_many(full.size, get_settings().workflow_nodes)])
    return full


avalidate = twin(validate)
