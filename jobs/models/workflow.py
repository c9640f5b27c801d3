"""A workflow as people know it: nodes, the edges between them, and the versions it has had.

The rows of nodes and edges are what people edit, and the truth. What a run starts from is a version: the definition as
a whole, written down when the rows first say it and never changed. ``publish`` is where rows become a version; it is
asked at every start too, so that a fixture, a bulk update and plain SQL count like a save in the admin.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models, router, transaction
from django.utils import timezone as clock

from jobs.core.options import LONGEST_TEXT
from jobs.core.wording import did_you_mean
from jobs.core.workflow import Definition, Node, Problem, read, refuse
from jobs.core.workflow.definition import EDGES, KEY_PATTERN, Edge
from jobs.exceptions import WorkflowInvalid
from jobs.models.by_name import ByName
from jobs.models.job_type import LONGEST_TIMEOUT, MOST_RETRIES
from jobs.models.pool import pool_name

LONGEST_KEY = 100
LONGEST_NAME = 120
"""Characters of a stored workflow's name."""

LONGEST_RUN = 366 * 86_400.0

MOST_NODES = 1_000_000
"""What a setting may allow at most. How many are allowed is asked where people save and start."""

node_key = RegexValidator(
    KEY_PATTERN.replace("^", r"\A").replace("$", r"\Z"),
    "Use 1 to 100 letters, digits, underscores, colons and dashes, beginning with a letter or digit.",
    "node_key",
)


class Workflow(models.Model):
    """One workflow. Its graph is in ``nodes`` and ``edges``; both refer to nodes by key, as the JSON does."""

    name = models.CharField(
        max_length=LONGEST_NAME,
        unique=True,
        help_text="Runs, schedules and commands refer to the workflow by this name; it cannot be changed later.",
    )
    description = models.CharField(max_length=200, blank=True, help_text="What it is for, for colleagues.")
    timeout = models.FloatField(
        "time limit",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001), MaxValueValidator(LONGEST_RUN)],
        help_text="Seconds that a run may take as a whole. Empty: no limit.",
    )
    version = models.PositiveIntegerField(default=0, editable=False, help_text="Of the graph; 0: not published yet.")
    created_at = models.DateTimeField(default=clock.now, editable=False)
    changed_at = models.DateTimeField(default=clock.now, editable=False)
    changed_by = models.CharField(max_length=150, blank=True, editable=False)

    objects = ByName["Workflow"]()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    def clean(self) -> None:
        if self.name.strip() != self.name or not self.name.isprintable() or self.name.startswith("{"):
            # One that begins like JSON would be taken for a workflow itself.
            raise ValidationError({"name": "Use printable characters, no { first and no spaces at the ends."})

    def definition(self) -> Definition:
        """What the rows say. Raises WorkflowInvalid where they do not hold together."""
        nodes, edges = [*self.nodes.all()], [*self.edges.all()]
        refuse(stray_problems(nodes, edges))
        return read(document(self, nodes, edges), most_nodes=MOST_NODES)

    def says(self, definition: Definition) -> bool:
        """Whether the rows say this already."""
        try:
            return digest_of(self.definition()) == digest_of(definition)
        except WorkflowInvalid:
            return False

    def publish(self, *, by: str = "") -> WorkflowVersion:
        """The version that the rows say: the newest one, or a new one where they say something else.

        ``by``: whoever is to stand in the history of a new one. Raises WorkflowInvalid.
        """
        newest = self._newest()
        definition = self.definition()
        if newest is not None and newest.digest == digest_of(definition):
            return newest
        with transaction.atomic(router.db_for_write(Workflow)):
            # Two may publish at once: under the lock the second one sees the version of the first.
            Workflow.objects.select_for_update().get(pk=self.pk)
            newest, definition = self._newest(), self.definition()
            if newest is not None and newest.digest == digest_of(definition):
                return newest
            return self._publish(definition, newest, by)

    def _newest(self) -> WorkflowVersion | None:
        # By name: a workflow that was deleted and made again goes on counting, for runs of the first are remembered.
        return WorkflowVersion.objects.filter(name=self.name).first()

    def _publish(self, definition: Definition, newest: WorkflowVersion | None, by: str) -> WorkflowVersion:
        version = WorkflowVersion.objects.create(
            workflow=self,
            name=self.name,
            number=newest.number + 1 if newest else 1,
            at=clock.now(),
            by=by,
            digest=digest_of(definition),
            nodes=len(definition.nodes),
            document=text_of(definition),
        )
        self.version, self.changed_at, self.changed_by = version.number, version.at, by
        self.save(update_fields=["version", "changed_at", "changed_by"])
        return version

    def replace_graph(self, definition: Definition) -> None:
        """Makes the rows say this. To be published."""
        with transaction.atomic(router.db_for_write(Workflow)):
            self.nodes.all().delete()
            self.edges.all().delete()
            WorkflowNode.objects.bulk_create((node_of(self, node) for node in definition.nodes), batch_size=500)
            WorkflowEdge.objects.bulk_create(
                (
                    WorkflowEdge(workflow=self, parent=parent, child=node.key, kind=kind.value)
                    for node in definition.nodes
                    for parent, kind in node.edges()
                ),
                batch_size=500,
            )


class WorkflowNode(models.Model):
    """One job of a workflow."""

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="nodes")
    key = models.CharField(
        max_length=LONGEST_KEY, validators=[node_key], help_text="Its name within the workflow; edges refer to it."
    )
    job_type = models.CharField(max_length=LONGEST_TEXT, blank=True, help_text="The job type that is run.")
    payload = models.JSONField(
        default=dict,
        blank=True,
        help_text='Its arguments, as a JSON object. {"$from": "extract.result.rows"} stands for a value of a parent, '
        '{"$from": "run.payload.day"} for one of the run.',
    )
    join = models.CharField(
        max_length=10, default="all", help_text="How many of its parents it waits for: all, any, or a number."
    )
    always = models.BooleanField(default=False, help_text="Runs in a cancelled run too: for cleaning up.")
    pool = models.CharField(
        max_length=64, blank=True, validators=[pool_name], help_text="Empty: as the job type has it."
    )
    priority = models.SmallIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(-100), MaxValueValidator(100)],
        help_text="-100 to 100, higher first.",
    )
    max_retries = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MaxValueValidator(MOST_RETRIES)], help_text="Retries after a failure."
    )
    timeout = models.FloatField(
        "time-out",
        null=True,
        blank=True,
        validators=[MinValueValidator(0.001), MaxValueValidator(LONGEST_TIMEOUT)],
        help_text="Seconds that one attempt may take.",
    )
    more = models.JSONField(
        default=dict,
        blank=True,
        help_text='Whatever else the JSON of a node may hold, such as {"delay": 60, "tags": ["night"]}.',
    )

    class Meta:
        ordering = ["id"]
        verbose_name = "node"
        default_permissions = ()  # who may change the workflow may change these
        constraints = [
            models.UniqueConstraint(
                fields=["workflow", "key"],
                name="jobs_one_node_of_a_key",
                violation_error_message="There is a node with this key already.",
            ),
        ]

    def __str__(self) -> str:
        return self.key

    def clean(self) -> None:
        if not isinstance(self.more, Mapping):
            raise ValidationError({"more": 'Write an object: {"delay": 60}.'})
        for name in self.more:
            if name not in MORE and name not in COLUMNS:
                raise ValidationError({"more": f"{name!r} has no place here. Known: {', '.join(MORE)}."})
            if name in COLUMNS and getattr(self, name) not in (None, ""):
                raise ValidationError({"more": f"{name} has a field of its own, which says something else."})

    def as_dict(self) -> dict[str, Any]:
        """It as a node of the JSON has it, without its edges."""
        given = {name: getattr(self, name) for name in COLUMNS}
        return {
            "key": self.key,
            **({"type": self.job_type} if self.job_type else {}),
            "payload": self.payload,
            "join": int(self.join) if self.join.isascii() and self.join.isdigit() else self.join,
            "always": self.always,
            **self.more,
            **{name: value for name, value in given.items() if value not in (None, "")},
        }


class WorkflowEdge(models.Model):
    """One node waits for another."""

    class Kind(models.TextChoices):
        SUCCESS = "on_success", "succeeded"
        FAILURE = "on_failure", "failed for good, or was cancelled"
        COMPLETE = "on_complete", "ended in whatever way"

    workflow = models.ForeignKey(Workflow, on_delete=models.CASCADE, related_name="edges")
    child = models.CharField(
        "node", max_length=LONGEST_KEY, validators=[node_key], help_text="Key of the node that waits."
    )
    parent = models.CharField(
        "waits for", max_length=LONGEST_KEY, validators=[node_key], help_text="Key of the node that it waits for."
    )
    kind = models.CharField("until it has", max_length=11, choices=Kind.choices, default=Kind.SUCCESS)

    class Meta:
        ordering = ["id"]
        verbose_name = "edge"
        default_permissions = ()  # who may change the workflow may change these
        constraints = [
            models.UniqueConstraint(
                fields=["workflow", "child", "parent"],
                name="jobs_one_edge_between_two_nodes",
                violation_error_message="There is an edge between these nodes already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.parent} → {self.child}"


class WorkflowVersion(models.Model):
    """What a workflow was, from one change of its graph to the next. Written once."""

    workflow = models.ForeignKey(Workflow, on_delete=models.SET_NULL, null=True, related_name="versions")
    name = models.CharField(max_length=LONGEST_NAME, help_text="Kept when the workflow is deleted.")
    number = models.PositiveIntegerField()
    at = models.DateTimeField(default=clock.now)
    by = models.CharField(max_length=150, blank=True, help_text="Empty: unknown.")
    digest = models.CharField(max_length=32)
    nodes = models.PositiveIntegerField(help_text="How many it has.")
    document = models.TextField(help_text="The definition as JSON.")  # as text: what was written is what is read

    class Meta:
        ordering = ["name", "-number"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["name", "number"], name="jobs_one_version_of_a_number")]

    def __str__(self) -> str:
        return f"{self.name}, version {self.number}"

    def definition(self) -> Definition:
        """What it was."""
        return msgspec.json.decode(self.document, type=Definition)


def document(workflow: Workflow, nodes: Iterable[WorkflowNode], edges: Iterable[WorkflowEdge]) -> dict[str, Any]:
    """The JSON of a workflow that these rows describe, whether it holds together or not.

    Edges by which a node waits that is not there have no place in it: see ``stray_problems``.
    """
    waits: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for edge in edges:
        waits[edge.child][_FIELD_OF[edge.kind]].append(edge.parent)
    limit = {} if workflow.timeout is None else {"timeout": workflow.timeout}
    return {"name": workflow.name, **limit, "nodes": [node.as_dict() | waits[node.key] for node in nodes]}


def stray_problems(nodes: Iterable[WorkflowNode], edges: Iterable[WorkflowEdge]) -> Iterator[Problem]:
    """Edges by which a node would wait that is not there: they have no place in the JSON."""
    keys = {node.key for node in nodes}
    for edge in edges:
        if edge.child not in keys:
            yield Problem(
                (edge.child, edge.parent),
                f"{edge.child!r} waits for {edge.parent!r} and is no node",
                did_you_mean(edge.child, keys),
            )


def node_of(workflow: Workflow, node: Node) -> WorkflowNode:
    """The row of a node, not saved."""
    given = msgspec.to_builtins(node)
    columns = {name: given[name] for name in COLUMNS if given.get(name) is not None}
    more = {name: value for name, value in given.items() if name in (*MORE, *COLUMNS) and name not in columns}
    return WorkflowNode(
        workflow=workflow,
        key=node.key,
        job_type=given.get("type", ""),
        payload=given.get("payload", {}),
        join=str(node.join),
        always=node.always,
        more=more,
        **columns,
    )


def text_of(definition: Definition) -> str:
    """The JSON of a definition, in the one form in which versions are kept and compared."""
    return msgspec.json.encode(_with_one_spelling(definition)).decode()


def digest_of(definition: Definition) -> str:
    """The same for the same graph, whatever its arguments' order and whichever words its edges were written with."""
    encoded = msgspec.json.encode(_with_one_spelling(definition), order="sorted")
    return blake2b(encoded, digest_size=16).hexdigest()


def _with_one_spelling(definition: Definition) -> Definition:
    """``on_success`` says the same as ``depends_on``."""
    nodes = (
        msgspec.structs.replace(node, depends_on=(*node.depends_on, *node.on_success), on_success=())
        for node in definition.nodes
    )
    return msgspec.structs.replace(definition, nodes=tuple(nodes))


COLUMNS = ("pool", "priority", "max_retries", "timeout")
"""Options of a node that have a field of their own."""
MORE = tuple(
    name
    for name in Node.__struct_fields__
    if name not in (*COLUMNS, *EDGES, "key", "type", "payload", "join", "always")
)
_FIELD_OF = {kind.value: kind.value for kind in Edge} | {Edge.SUCCESS.value: "depends_on"}
