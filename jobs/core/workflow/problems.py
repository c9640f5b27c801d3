"""What is wrong with a workflow, as facts that a page can put beside the nodes that they are about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from jobs.exceptions import WorkflowInvalid

_TOLD = 5


class Problem(NamedTuple):
    """One thing that is wrong. ``nodes``: keys, none where it is about the whole."""

    nodes: tuple[str, ...]
    message: str
    fix: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {"nodes": list(self.nodes), "message": self.message, "fix": self.fix}


def refuse(found: Iterable[Problem]) -> None:
    """Raises WorkflowInvalid with the problems, if there are any."""
    if problems := list(found):
        raise invalid(*problems)


def invalid(*problems: Problem) -> WorkflowInvalid:
    """The error that tells of them."""
    if len(problems) == 1:
        return WorkflowInvalid(problems[0].message, problems=problems, fix=problems[0].fix)
    told = "; ".join(_sentence(problem) for problem in problems[:_TOLD])
    more = f"; and {len(problems) - _TOLD} more" if len(problems) > _TOLD else ""
    return WorkflowInvalid(f"{len(problems)} problems: {told}{more}", problems=problems)


def _sentence(problem: Problem) -> str:
    """What is wrong, and in parentheses what helps."""
    return f"{problem.message} ({problem.fix.rstrip('.')})" if problem.fix else problem.message
