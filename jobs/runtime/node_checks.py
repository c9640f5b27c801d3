"""Whether nodes fit the job types that are registered in this process."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.core.workflow import Definition, Node, Problem, known_and_unknown
from jobs.exceptions import PayloadInvalid, UnknownJobType
from jobs.registry import registry


def type_problems(node: Node, *, allow_unknown: bool = False, where: str = "") -> Iterator[Problem]:
    """What is wrong with its type and payload, as far as that is known before a run; and in its sub-workflow.

    ``where``: what its key begins with in a run.
    """
    if isinstance(node.workflow, Definition):
        for inner in node.workflow.nodes:
            yield from type_problems(inner, allow_unknown=allow_unknown, where=f"{where}{node.key}:")
    if not node.type:
        return
    key = where + node.key
    if node.durability not in (None, "memory"):
        yield _not_durable(key, node.durability)
    try:
        job_type = registry.get(node.type)
    except UnknownJobType as error:
        if not allow_unknown:
            yield Problem((key,), f"Node {key!r}: {error}", error.fix)
        return
    if node.durability is None and job_type.defaults.durability != "memory":
        yield _not_durable(key, job_type.defaults.durability)
    known = known_and_unknown(node.payload)
    if known is None:
        return
    try:
        job_type.check(*known)
    except PayloadInvalid as error:
        yield Problem((key,), f"Node {key!r}: {error}", error.fix)


def _not_durable(key: str, durability: str) -> Problem:
    return Problem(
        (key,),
        f'Node {key!r}: durability "{durability}" is not available in this version',
        'Write durability="memory".',
    )
