"""What makes a workflow one that can run. Every problem names its nodes; all problems of a kind are found at once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from jobs.core import options
from jobs.core.payload import dumps
from jobs.core.retry import Backoff, Exponential, Fixed, Linear
from jobs.core.wording import did_you_mean, shown
from jobs.core.workflow import templates
from jobs.core.workflow.definition import EACH, EDGES, KEY_PATTERN, OPTIONS, RUN, Definition, Edge, Keys, Node, Retries
from jobs.core.workflow.graph import cycles
from jobs.core.workflow.problems import Problem, invalid, refuse
from jobs.core.workflow.templates import TemplateError
from jobs.exceptions import OptionInvalid, WorkflowInvalid

MOST_NODES = 10_000
"""Nodes of a definition, where the setting says nothing else."""

ANY_NUMBER = 2**31

LONGEST_TIMEOUT = 10 * 366 * 86_400.0
"""Seconds. A run, a signal or a person may take months."""


def read(document: Any, *, most_nodes: int = MOST_NODES) -> Definition:
    """The definition that a JSON text or object describes. Raises WorkflowInvalid with all that is wrong with it."""
    try:
        return _read(document, most_nodes)
    except RecursionError:
        raise WorkflowInvalid("The workflow is nested too deep: groups in groups, or data in data.") from None


def _read(document: Any, most_nodes: int) -> Definition:
    document = _object(document)
    nodes = _nodes(document, most_nodes)
    found = [*_field_problems(document, Definition.__struct_fields__, "The workflow"), *_name_problems(document)]
    made: list[Node] = []
    for raw in nodes:
        try:
            made.append(read_node(raw))
        except WorkflowInvalid as error:
            found += error.problems
    refuse(found)
    definition = Definition(name=document["name"], nodes=tuple(made), timeout=_timeout(document))
    check(definition)
    if definition.size > most_nodes:
        raise invalid(too_many(definition.size, most_nodes))
    return definition


def read_node(raw: Mapping[str, Any]) -> Node:
    """One node, by itself. Raises WorkflowInvalid: unknown fields, values of a wrong type, wrong options."""
    if not isinstance(raw, Mapping):
        raise invalid(Problem((), f"A node must be an object, got {shown(raw)}", 'Write {"key": …}.'))
    key = str(raw.get("key", "?"))[:100]
    refuse(_field_problems(raw, Node.__struct_fields__, f"Node {key!r}", key))
    if isinstance(raw.get("workflow"), Mapping):
        raw = {**raw, "workflow": _sub_workflow(key, raw["workflow"])}
    try:
        node = msgspec.convert(raw, Node, str_keys=True)
    except msgspec.ValidationError as error:
        raise invalid(Problem((key,), f"Node {key!r}: {_reworded(error)}")) from None
    refuse(_problems_of_one(node))
    return node


def _sub_workflow(key: str, raw: Mapping[str, Any]) -> Definition:
    """The workflow that is a node's. The problems in it name its nodes as they would be called in a run."""
    try:
        return _read(raw, ANY_NUMBER)  # they are counted with the whole
    except WorkflowInvalid as error:
        raise invalid(
            *(
                Problem(
                    tuple(f"{key}:{node}" for node in problem.nodes) or (key,),
                    f"In the workflow of node {key!r}: {problem.message}",
                    problem.fix,
                )
                for problem in error.problems
            )
        ) from None


def check(definition: Definition) -> None:
    """Raises WorkflowInvalid where the nodes do not hold together."""
    refuse(_key_problems(definition.nodes))
    refuse(_edge_problems(definition.nodes))
    refuse(_template_problems(definition.nodes))


def spec_options(node: Node) -> dict[str, Any]:
    """The options of the node's job as ``jobs.core.options`` wants them. Raises OptionInvalid."""
    found = node.options()
    if node.backoff is not None:
        found["backoff"] = backoff_of(node.backoff)
    return options.check_options(found)


# --- The document ----------------------------------------------------------------------------------------------------


def _object(document: Any) -> Mapping[str, Any]:
    if isinstance(document, str | bytes):
        try:
            document = msgspec.json.decode(document)
        except (msgspec.DecodeError, RecursionError) as error:
            raise invalid(Problem((), f"This is no JSON: {error}")) from None
    if isinstance(document, Mapping):
        return document
    raise invalid(
        Problem((), f"A workflow must be an object, got {shown(document)}", 'Write {"name": …, "nodes": […]}.')
    )


def _nodes(document: Mapping[str, Any], most: int) -> list[Any]:
    nodes = document.get("nodes")
    if not isinstance(nodes, list | tuple) or not nodes:
        raise invalid(Problem((), "The workflow has no nodes", 'Write "nodes": [{"key": …, "type": …}].'))
    if len(nodes) > most:
        raise invalid(too_many(len(nodes), most))
    return list(nodes)


def too_many(count: int, most: int) -> Problem:
    return Problem((), f"{count:,} nodes are too many: at most {most:,}", "Raise SCHEDULER['WORKFLOW_NODES'].")


def _timeout(document: Mapping[str, Any]) -> float | None:
    """The time limit of a run."""
    timeout = document.get("timeout")
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout <= LONGEST_TIMEOUT:
        raise invalid(
            Problem(
                (), f"The workflow's timeout: expected seconds above 0, got {shown(timeout)}", "Write 3600 for an hour."
            )
        )
    return float(timeout)


def _name_problems(document: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        options.check_text("name", document.get("name"))
    except OptionInvalid as error:
        yield Problem((), f"The workflow's {error}", error.fix)


def _field_problems(raw: Mapping[str, Any], known: Keys, whose: str, *nodes: str) -> Iterator[Problem]:
    for field in raw:
        if field not in known:
            yield Problem(nodes, f"{whose} has no field {shown(field)}", did_you_mean(str(field), known))


# --- A node by itself ------------------------------------------------------------------------------------------------


def _problems_of_one(node: Node) -> Iterator[Problem]:
    try:
        spec_options(node)
        dumps(node.payload)
    except (OptionInvalid, ValueError) as error:
        yield Problem((node.key,), f"Node {node.key!r}: {error}", getattr(error, "fix", ""))
    if not re.fullmatch(KEY_PATTERN, node.key):
        yield Problem(
            (node.key[:100],),
            f"Node {node.key[:100]!r}: its key has {len(node.key)} characters, or a line break",
            "A key has up to 100 letters, digits, '_', ':' and '-'.",
        )
    if node.key in _TAKEN:
        yield Problem(
            (node.key,),
            f"No node can be called {node.key!r}",
            f"Templates call {_TAKEN[node.key]} so. Choose another key.",
        )
    yield from _kind_problems(node)
    if node.always and not node.on_complete:
        yield Problem(
            (node.key,),
            f"Node {node.key!r} is marked always, and has no parent that may end in any way",
            "Name what it cleans up after in on_complete.",
        )


def _kind_problems(node: Node) -> Iterator[Problem]:
    """What it runs or waits for must be said once, and the other fields must go with it."""
    named = [field for field in ("type", "workflow", "signal", "approval") if getattr(node, field)]
    if len(named) != 1:
        yield Problem(
            (node.key,),
            f"Node {node.key!r} {'names both ' + ' and '.join(named) if named else 'does not say what it runs'}",
            'Write one of "type", "workflow", "signal" and "approval".',
        )
        return
    for field in (*OPTIONS, *_ONLY_FOR):
        if _is_set(node, field) and not _goes_with(field, named[0]):
            yield Problem(
                (node.key,),
                f"Node {node.key!r} has {field}, which does not go with {named[0]}",
                "Take it away.",
            )
    if node.on_timeout != "fail" and not node.timeout:
        yield Problem(
            (node.key,), f"Node {node.key!r} has on_timeout and no timeout", "Say how long it waits: timeout."
        )
    if node.permission is not None and node.permission.count(".") != 1:
        yield Problem(
            (node.key,), f"Node {node.key!r}: {shown(node.permission)} is no permission", "Write app.permission."
        )


def _is_set(node: Node, field: str) -> bool:
    return getattr(node, field) not in (UNSET, None, (), {}, _USUAL.get(field))


def _goes_with(field: str, named: str) -> bool:
    if field in _ONLY_FOR:
        return named in _ONLY_FOR[field]
    return named == "type" or (field == "timeout" and named in ("signal", "approval", "workflow"))


_ONLY_FOR = {"each": ("type", "workflow"), "on_timeout": ("signal", "approval"), "permission": ("approval",)}
"""Fields of a node → what it must be; the options of a job are for nodes with a type."""
_USUAL = {"on_timeout": "fail"}
_TAKEN = {RUN: "the run", EACH: "the item of a list"}


def backoff_of(retries: Retries) -> Backoff:
    """The backoff that the object describes. OptionInvalid for a field that its kind does not have."""
    kinds: dict[str, type[Backoff]] = {"exponential": Exponential, "linear": Linear, "fixed": Fixed}
    kind = kinds[retries.kind]
    given = msgspec.to_builtins(retries)
    del given["kind"]
    for name in given:
        if name not in kind.__struct_fields__:
            raise OptionInvalid(
                f"backoff: {retries.kind!r} has no {name!r}", fix=did_you_mean(name, kind.__struct_fields__)
            )
    return kind(**given)


# --- The nodes together ----------------------------------------------------------------------------------------------


def _key_problems(nodes: Sequence[Node]) -> Iterator[Problem]:
    for key, count in Counter(node.key for node in nodes).items():
        if count > 1:
            yield Problem((key,), f"{count} nodes have the key {key!r}", "Give each a key of its own.")
    groups = {node.key for node in nodes if node.kind.is_group}
    for node in nodes:
        for group in groups.intersection(_beginnings(node.key)):
            yield Problem(
                (node.key, group),
                f"Node {node.key!r} is called like a member of {group!r}",
                f"Keys that begin with {group + ':'!r} are for what {group!r} opens into.",
            )


def _beginnings(key: str) -> list[str]:
    """Of ``a:b:c``: ``a`` and ``a:b``."""
    parts = key.split(":")
    return [":".join(parts[:end]) for end in range(1, len(parts))]


def _edge_problems(nodes: Iterable[Node]) -> Iterator[Problem]:
    keys = {node.key for node in nodes}
    for node in nodes:
        yield from _problems_with_parents(node, keys)
    # A node that waits for itself was named above, and is no news as a cycle of one.
    parents = {node.key: [parent for parent, _ in node.edges() if parent != node.key] for node in nodes}
    for cycle in cycles(parents):
        circle = " → ".join((*cycle, cycle[0])) if len(cycle) <= _SHOWN else f"{' → '.join(cycle[:_SHOWN])} → …"
        yield Problem(
            tuple(cycle), f"{len(cycle)} nodes wait for each other: {circle}", "Take one of these edges away."
        )


def _problems_with_parents(node: Node, keys: set[str]) -> Iterator[Problem]:
    parents = Counter(parent for parent, _ in node.edges())
    for parent, count in parents.items():
        if parent == node.key:
            yield Problem((node.key,), f"Node {node.key!r} waits for itself", "Take that edge away.")
        elif parent not in keys:
            yield Problem(
                (node.key, parent),
                f"Node {node.key!r} waits for {parent!r}, which is no node",
                did_you_mean(parent, keys),
            )
        elif count > 1:
            yield Problem(
                (node.key, parent),
                f"Node {node.key!r} names its parent {parent!r} {count} times",
                f"Keep one edge; on_complete waits for any end of {parent!r}.",
            )
    if isinstance(node.join, int) and node.join > len(parents):
        yield Problem(
            (node.key,),
            f"Node {node.key!r} wants {node.join} of its {len(parents)} parents",
            f"Write a join of at most {len(parents)}." if parents else 'Leave "join" out: it has no parents.',
        )


def _template_problems(nodes: Iterable[Node]) -> Iterator[Problem]:
    keys = {node.key for node in nodes}
    for node in nodes:
        parents = dict(node.edges())
        for field, about in (("payload", node), ("each", msgspec.structs.replace(node, each=UNSET))):
            for found in templates.references_and_errors(getattr(node, field)):
                if isinstance(found, TemplateError):
                    yield Problem((node.key,), f"Node {node.key!r}: {field}: {found}", found.fix)
                else:
                    yield from _reference_problems(about, found, parents, keys)


def _reference_problems(
    node: Node, reference: templates.Reference, parents: Mapping[str, Edge], keys: set[str]
) -> Iterator[Problem]:
    source, where = reference.source, f"Node {node.key!r} takes {str(reference)!r}"
    if source == RUN:
        return
    if source == EACH:
        if node.each is UNSET:
            yield Problem((node.key,), f"{where}, and is not run for each of a list", 'Give it "each".')
    elif source not in keys:
        yield Problem((node.key, source), f"{where}, and {source!r} is no node", did_you_mean(source, {*keys, RUN}))
    elif source not in parents:
        yield Problem(
            (node.key, source), f"{where}, and {source!r} is not among its parents", f"Add {source!r} to depends_on."
        )
    elif (reference.field, parents[source]) in _NEVER_THERE:
        yield Problem(
            (node.key, source),
            f"{where}, and runs {_RUNS_AFTER[parents[source]]} of {source!r}, which leaves no {reference.field}",
            "Take the error." if reference.field == "result" else "Take the result.",
        )


_NEVER_THERE = {("result", Edge.FAILURE), ("error", Edge.SUCCESS)}
_RUNS_AFTER = {Edge.FAILURE: "after a failure", Edge.SUCCESS: "after a success"}
_SHOWN = 20  # keys of one cycle


def _reworded(error: msgspec.ValidationError) -> str:
    """The decoder's message with the field first."""
    what, _, where = str(error).partition(" - at `$")
    what = what.replace("`", "").replace("Object ", "")
    field = where.removesuffix("`").removeprefix(".")
    return f"{field}: {what[:1].lower()}{what[1:]}" if field else f"{what[:1].lower()}{what[1:]}"


__all__ = ["EDGES", "MOST_NODES", "OPTIONS", "check", "read", "read_node", "spec_options"]
