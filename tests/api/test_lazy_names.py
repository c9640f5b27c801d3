"""``from jobs import …``: the public names, fetched when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import jobs
from jobs import api

CONTRACT = [
    "job",
    "Context",
    "Exponential",
    "Linear",
    "Fixed",
    "Retry",
    "Dead",
    "Snooze",
    "Cancelled",
    "current_context",
    "get_job",
    "cancel",
    "retry",
    "run_now",
    "resubmit",
    "wait",
    "pools",
    "scheduler",
]


@pytest.mark.parametrize("name", CONTRACT)
def test_each_name_of_the_contract_is_there(name: str) -> None:
    assert getattr(jobs, name) is getattr(api, name)


def test_names_that_are_not_there_are_missed_as_anywhere() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        jobs.nothing  # noqa: B018


def test_tools_can_see_the_names() -> None:
    assert {"job", "pools", "Retry"} <= set(dir(jobs))


@pytest.mark.parametrize(
    "statement",
    [
        "import jobs; assert not [m for m in sys.modules if m.startswith(('jobs.', 'redis', 'django'))]",
        "from jobs import api; api.get_job",
        "from jobs import job, pools; pools.list",
        "from jobs import registry; registry.registry",
        "import jobs; jobs.api.enqueue",
        "from jobs import job; job('x.y')(lambda: None)",
    ],
)
def test_the_first_import_may_be_any_and_needs_no_set_up_django(statement: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys; {statement}"], capture_output=True, text=True, timeout=60
    )

    assert ended.returncode == 0, ended.stderr
