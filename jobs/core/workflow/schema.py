"""The JSON Schema of a workflow, for editors and for programs that write workflows."""

from __future__ import annotations

from typing import Any

import msgspec

from jobs.core.workflow.definition import KEY_PATTERN, Definition


def schema() -> dict[str, Any]:
    """What a document must look like by itself. That keys are there and no cycle is, no schema can say."""
    (reference,), parts = msgspec.json.schema_components([Definition], ref_template="#/$defs/{name}")
    parts["Node"]["properties"]["key"]["pattern"] = KEY_PATTERN  # what is written; in a run keys may be longer
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A workflow of Mainspring",
        **reference,
        "$defs": dict(sorted(parts.items())),
    }
