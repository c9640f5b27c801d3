"""Whether a workflow can run, as it stands and with the job types that are registered here."""

from __future__ import annotations

from collections.abc import Mapping
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


avalidate = twin(validate)
