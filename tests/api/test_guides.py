"""The guides of this part: what they show can be written, and what there is they show."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import jobs
from jobs import testing
from jobs.core.context import Context
from jobs.core.options import EnqueueOptions
from jobs.registry import JobOptions

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(name: str) -> list[str]:
    return BLOCK.findall((GUIDES / f"{name}.md").read_text())


@pytest.mark.parametrize("guide", ["jobs", "limits", "logs", "middleware", "retries", "testing"])
def test_the_code_of_a_guide_is_python_and_imports_what_there_is(guide: str) -> None:
    for code in blocks(guide):
        tree = compile(code, guide, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("jobs", "jobs.testing"):
                source = jobs if node.module == "jobs" else testing
                assert [alias.name for alias in node.names if not hasattr(source, alias.name)] == []


@pytest.mark.parametrize("option", EnqueueOptions.__annotations__)
def test_every_option_of_an_enqueue_is_in_the_guide(option: str) -> None:
    assert f"`{option}`" in (GUIDES / "jobs.md").read_text()


@pytest.mark.parametrize("option", JobOptions.__annotations__)
def test_every_option_of_a_job_type_is_in_the_guide(option: str) -> None:
    assert f"`{option}`" in (GUIDES / "jobs.md").read_text()


@pytest.mark.parametrize("name", [name for name in vars(Context) if not name.startswith("_")])
def test_what_a_context_offers_is_in_the_guide(name: str) -> None:
    # These are for the worker and for tests.
    if name not in {"active", "stop", "lease", "host", "stop_reason", "deadline_at", "is_lease_over"}:
        assert re.search(rf"`{name}[`(]", (GUIDES / "jobs.md").read_text())


@pytest.mark.parametrize("name", ["capture", "drain", "inline", "isolated"])
def test_what_tests_can_use_is_in_the_guide(name: str) -> None:
    assert name in testing.__all__
    assert f"`{name}(" in (GUIDES / "testing.md").read_text()
