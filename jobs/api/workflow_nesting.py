"""A workflow with the stored ones that it names put into it: as it runs."""

from __future__ import annotations

from jobs.conf import get_settings
from jobs.core import workflow
from jobs.core.workflow import Definition


def in_full(definition: Definition) -> Definition:
    """The definition with stored sub-workflows in place of their names. WorkflowInvalid: unknown, or one in itself."""
    if not any(workflow.stored_names(definition)):
        return definition
    from jobs.api import workflow_definitions as stored  # rows, which only a set-up Django has

    full = workflow.in_full(definition, lambda name: stored.definition(name).definition)
    if full.size > get_settings().workflow_nodes:
        workflow.refuse([workflow.too_many(full.size, get_settings().workflow_nodes)])
    return full
