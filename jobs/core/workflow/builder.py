"""Workflows written in Python.

flow = Workflow("nightly")
extract = flow.add("extract", "report.extract", {"day": flow.payload("day")})
pages = flow.map("page", "report.page", [{"number": n} for n in range(10)], pool="background")
merge = flow.add("merge", "report.merge", {"rows": extract.result("rows")})
flow.chain(extract, pages, merge)
flow.add("alarm", "notify", on_failure=[extract, merge], join="any")
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Protocol

import msgspec

from jobs.core.payload import dumps
from jobs.core.retry import Exponential, Fixed, Linear
from jobs.core.workflow import checks
from jobs.core.workflow.definition import EACH, RUN, Definition, Node
from jobs.core.workflow.problems import Problem, invalid
from jobs.core.workflow.templates import FROM


class Named(Protocol):
    """A job type, say."""

    @property
    def name(self) -> str: ...


class Part(msgspec.Struct, frozen=True):
    """Nodes of a workflow that are wired as one: what comes before goes to the heads, what comes after to the tails."""

    heads: tuple[str, ...]
    tails: tuple[str, ...]

    @property
    def key(self) -> str:
        """Of a part that is one node."""
        (key,) = self.tails
        return key

    def result(self, *path: str | int) -> dict[str, str]:
        """For a payload: the result of this one node, or what is found in it."""
        return _reference(self.key, "result", path)

    def error(self, *path: str | int) -> dict[str, str]:
        """For a payload: the error (``type``, ``message``, ``traceback``) of this one node."""
        return _reference(self.key, "error", path)

    def state(self) -> dict[str, str]:
        """For a payload: how this one node ended."""
        return _reference(self.key, "state", ())


Step = str | Part
Steps = Step | Iterable[Step]


class Workflow:
    """A workflow that is being written. Its JSON is the same whether it came from here, a file or the admin."""

    def __init__(self, name: str, *, timeout: float | timedelta | None = None) -> None:
        """``timeout``: seconds that a run may take."""
        self.name = name
        self.timeout = timeout
        self._nodes: dict[str, Node] = {}

    def add(
        self,
        key: str,
        type: str | Named,
        payload: Mapping[str, Any] | None = None,
        *,
        depends_on: Steps = (),
        on_success: Steps = (),
        on_failure: Steps = (),
        on_complete: Steps = (),
        join: str | int = "all",
        always: bool = False,
        **options: Any,
    ) -> Part:
        """One node. ``options`` are those of ``using()`` that a node can have; parents may be added later.

        Raises WorkflowInvalid for a key that is taken and for anything that the JSON of a node may not hold.
        """
        edges = {
            "depends_on": depends_on,
            "on_success": on_success,
            "on_failure": on_failure,
            "on_complete": on_complete,
        }
        raw = {
            "key": key,
            "type": type if isinstance(type, str) else type.name,
            "payload": _as_json(key, payload or {}),
            **{field: _tails(steps) for field, steps in edges.items()},
            "join": join,
            "always": always,
            **{name: _plain(value) for name, value in options.items()},
        }
        if not raw["type"]:
            del raw["type"]  # what the options say that it is
        return self._keep(checks.read_node(raw))

    def sub(
        self, key: str, workflow: str | Workflow | Definition, payload: Mapping[str, Any] | None = None, /, **more: Any
    ) -> Part:
        """A workflow as one node: a stored one by its name, or a whole one. It is started with ``payload``.

        Its result is an object of the results of its last nodes. ``each``: run it for each of a list.
        """
        what = workflow if isinstance(workflow, str) else workflow.as_dict()
        return self.add(key, "", payload, workflow=what, **more)

    def signal(self, key: str, name: str | None = None, /, **more: Any) -> Part:
        """Waits until a signal of this name (else of the key's) is sent to the run; its payload is the result.

        ``timeout`` seconds at most: then it is dead, or with ``on_timeout="continue"`` has succeeded.
        """
        return self.add(key, "", signal=name or key, **more)

    def approval(self, key: str, question: str, payload: Mapping[str, Any] | None = None, /, **more: Any) -> Part:
        """Waits until a person approves (it succeeded) or rejects (it is dead); ``payload`` is shown with the question.

        ``permission``: who may decide, else who may operate. ``timeout`` and ``on_timeout`` as of a signal.
        """
        return self.add(key, "", payload, approval=question, **more)

    def map(
        self,
        key: str,
        type: str | Named,
        payloads: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        payload: Mapping[str, Any] | None = None,
        /,
        **more: Any,
    ) -> Part:
        """One node for each payload, called ``key:0``, ``key:1``, …; ``more`` as in ``add``, the same for all.

        ``payloads`` may be known only in the run, as ``extract.result("rows")``: then this is one node, which ends when
        all that it opens into have ended. ``payload`` says what each is run with: ``flow.item("url")`` stands for
        what is found in its item. Without it the items are the payloads.
        """
        if isinstance(payloads, Mapping):
            given = {FROM: f"{EACH}.item"} if payload is None else payload
            return self.add(key, type, given, each=_as_json(key, payloads), **more)
        if payload is not None:
            return self.add(key, type, payload, each=_as_json(key, payloads), **more)
        if not payloads:
            raise invalid(Problem((key,), f"map {key!r} has no payloads", "Leave it out where there is nothing to do."))
        return self.group(*(self.add(f"{key}:{number}", type, each, **more) for number, each in enumerate(payloads)))

    def group(self, *steps: Steps) -> Part:
        """Parts that run beside each other, as one part."""
        return Part(
            tuple(key for step in steps for key in _heads(step)), tuple(key for step in steps for key in _tails(step))
        )

    def chain(self, *steps: Steps) -> Part:
        """Each step starts when all of the step before has succeeded."""
        if not steps:
            raise invalid(Problem((), "A chain needs a step"))
        for before, after in pairwise(steps):
            for key in _heads(after):
                self._wait(key, _tails(before))
        return Part(tuple(_heads(steps[0])), tuple(_tails(steps[-1])))

    def chord(self, group: Steps, body: Step) -> Part:
        """Runs the group, then the body once all of the group has succeeded."""
        return self.chain(group, body)

    def payload(self, *path: str | int) -> dict[str, str]:
        """For a payload of a node: the payload that the run was started with, or what is found in it."""
        return _reference(RUN, "payload", path)

    def item(self, *path: str | int) -> dict[str, str]:
        """For a payload of ``map``: the item that this node is run for, or what is found in it."""
        return _reference(EACH, "item", path)

    def index(self) -> dict[str, str]:
        """For a payload of ``map``: the position of the item in its list, from 0."""
        return _reference(EACH, "index", ())

    def definition(self) -> Definition:
        """The workflow as a value. Raises WorkflowInvalid naming all nodes that do not hold together."""
        return checks.read(self.as_dict(), most_nodes=checks.ANY_NUMBER)

    def as_dict(self) -> dict[str, Any]:
        """Its JSON, as far as it is written: not checked."""
        timeout = _plain(self.timeout)
        return Definition(name=self.name, nodes=tuple(self._nodes.values()), timeout=timeout).as_dict()

    def as_json(self) -> str:
        """Its JSON, laid out for people. Raises WorkflowInvalid."""
        return msgspec.json.format(msgspec.json.encode(self.definition()), indent=2).decode()

    @classmethod
    def from_json(cls, document: str | bytes | Mapping[str, Any]) -> Workflow:
        """A workflow to go on with. Raises WorkflowInvalid."""
        definition = checks.read(document)
        flow = cls(definition.name, timeout=definition.timeout)
        for node in definition.nodes:
            flow._keep(node)
        return flow

    def _keep(self, node: Node) -> Part:
        if node.key in self._nodes:
            raise invalid(Problem((node.key,), f"There is a node {node.key!r} already", "Give each a key of its own."))
        self._nodes[node.key] = node
        return Part((node.key,), (node.key,))

    def _wait(self, key: str, parents: Iterable[str]) -> None:
        if key not in self._nodes:
            raise invalid(Problem((key,), f"A chain names {key!r}, which is no node", "Add it first."))
        node = self._nodes[key]
        new = tuple(parent for parent in parents if parent not in (*node.depends_on, *node.on_success))
        self._nodes[key] = msgspec.structs.replace(node, depends_on=(*node.depends_on, *new))


def _heads(steps: Steps) -> list[str]:
    if isinstance(steps, str):
        return [steps]
    if isinstance(steps, Part):
        return list(steps.heads)
    return [key for step in steps for key in _heads(step)]


def _tails(steps: Steps) -> list[str]:
    if isinstance(steps, str):
        return [steps]
    if isinstance(steps, Part):
        return list(steps.tails)
    return [key for step in steps for key in _tails(step)]


def _reference(source: str, field: str, path: Iterable[str | int]) -> dict[str, str]:
    return {FROM: ".".join((source, field, *map(str, path)))}


def _as_json(key: str, payload: Mapping[str, Any] | Sequence[Any]) -> Any:
    """What JSON makes of the payload: dates become text, and so on."""
    try:
        return msgspec.json.decode(dumps(payload))
    except ValueError as error:
        raise invalid(Problem((key,), f"Node {key!r}: payload: {error}")) from None


def _plain(value: Any) -> Any:
    """An option of Python as the JSON of a node has it."""
    if isinstance(value, Exponential | Linear | Fixed):
        return {"kind": type(value).__name__.lower(), **msgspec.structs.asdict(value)}
    if hasattr(value, "total_seconds"):
        return value.total_seconds()
    if isinstance(value, set | frozenset):
        return sorted(value)
    return value
