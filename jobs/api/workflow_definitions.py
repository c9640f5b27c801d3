"""Stored workflows: keeping definitions in the database, their versions, and files of them.

What is kept is checked like what is started. A run keeps the version it started with, whatever is changed later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from django.core.exceptions import ValidationError
from django.db import router, transaction

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.api.redaction import shown_value, tell_exported
from jobs.api.run_history import DefinitionView, PastRun, Totals, adefinitions, definitions
from jobs.api.workflow_checks import Document, validate
from jobs.core.job import iso
from jobs.core.wording import did_you_mean
from jobs.core.wording import shown as quoted
from jobs.core.workflow import Definition
from jobs.exceptions import SchedulerError, WorkflowInvalid
from jobs.models import Workflow, WorkflowVersion
from jobs.models.workflow import LONGEST_NAME


class WorkflowNotFound(SchedulerError):
    """There is no stored workflow of this name."""

    code = "workflow_not_found"


class StoredWorkflow(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a stored workflow, with what is known of the workflow besides."""

    name: str
    version: int
    definition: Definition
    description: str = ""
    changed_at: datetime
    changed_by: str

    def as_dict(self) -> dict[str, Any]:
        """Its JSON: what is known of it, and ``definition`` as a file has it."""
        known = {name: getattr(self, name) for name in ("name", "version", "description", "changed_by")}
        return {**known, "changed_at": iso(self.changed_at), "definition": self.definition.as_dict()}


class VersionView(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a workflow's history, and what it made different from the one before."""

    number: int
    at: datetime
    by: str
    nodes: int
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    is_newest: bool = False

    def as_dict(self) -> dict[str, Any]:
        return {name: iso(value) if isinstance(value, datetime) else value for name, value in self._items()}

    def _items(self) -> Iterable[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name in self.__struct_fields__)


class Imported(NamedTuple):
    """Names by what became of them."""

    created: list[str]
    changed: list[str]
    unchanged: list[str]


def define(document: Document, *, description: str | None = None, by: str = "") -> StoredWorkflow:
    """Stores a workflow under its name, or a new version of the one that has the name.

    Changes nothing where it says what is stored already. Raises WorkflowInvalid naming the nodes.
    """
    wanted = validate(document)
    _check_storable(wanted)
    with transaction.atomic(router.db_for_write(Workflow)):
        row = Workflow.objects.filter(name=wanted.name).first() or Workflow(name=wanted.name)
        before = told(row)
        _save(row, wanted, description)
        row.publish(by=by or audit.actor().who)
    record_change(row, before)
    return _as_stored(row, wanted)


def _save(row: Workflow, wanted: Definition, description: str | None) -> None:
    row.timeout = getattr(wanted, "timeout", None)
    row.description = row.description if description is None else description
    try:
        row.full_clean()
    except ValidationError as error:
        raise WorkflowInvalid(" ".join(error.messages)) from None
    row.save()
    if not row.says(wanted):
        row.replace_graph(wanted)


def definition(name: str) -> StoredWorkflow:
    """The newest version of a stored workflow. WorkflowNotFound with the nearest name."""
    row = _row(name)
    newest = row.publish()
    return _as_stored(row, newest.definition())


def names() -> Sequence[str]:
    """The names of all stored workflows, in order."""
    return [*Workflow.objects.values_list("name", flat=True)]


def versions(name: str) -> Sequence[VersionView]:
    """What it has been, newest first; also of a workflow that was deleted."""
    rows = [*WorkflowVersion.objects.filter(name=name)]
    return [
        _as_view(row, rows[number + 1] if number + 1 < len(rows) else None, number == 0)
        for number, row in enumerate(rows)
    ]


def version(name: str, number: int) -> Definition:
    """What it was in this version. WorkflowNotFound."""
    row = WorkflowVersion.objects.filter(name=name, number=number).first()
    if row is None:
        raise WorkflowNotFound(f"There is no version {number} of a workflow {quoted(name)}.", fix="See its versions.")
    return row.definition()


def restore(name: str, number: int, *, by: str = "") -> StoredWorkflow:
    """Makes the graph what it was in a version: as a new version. WorkflowNotFound, and the errors of ``define``."""
    return define(version(_row(name).name, number), by=by)


def forget(name: str) -> None:
    """Removes a stored workflow. Its runs go on, and its versions are kept. WorkflowNotFound."""
    row = _row(name)
    before = told(row)
    row.delete()
    audit.record("workflow.delete", name, before=before)


def export(wanted: Iterable[str] | None = None) -> Sequence[dict[str, Any]]:
    """The definitions as files have them, by name; what ``import_`` takes. WorkflowNotFound. What people are not shown
    stands there in full, and who took it is on record.
    """
    found = [definition(name).definition for name in (names() if wanted is None else wanted)]
    tell_exported("workflow", [each.name for each in found if shown(each) != each.as_dict()])
    return [each.as_dict() for each in found]


def import_(documents: Iterable[Mapping[str, Any]], *, by: str = "", dry_run: bool = False) -> Imported:
    """Stores what is new and what differs. All of it is checked before the first is stored. Raises WorkflowInvalid."""
    wanted = [validate(document) for document in documents]
    done = Imported([], [], [])
    with transaction.atomic(router.db_for_write(Workflow)):
        for each in wanted:
            _check_storable(each)
            row = Workflow.objects.filter(name=each.name).first()
            if row is not None and row.says(each):
                done.unchanged.append(each.name)
                continue
            (done.created if row is None else done.changed).append(each.name)
            if not dry_run:
                define(each, by=by)
    return done


def shown(definition: Definition) -> dict[str, Any]:
    """Its JSON as people may see it: arguments that a job type redacts are masked."""
    document = definition.as_dict()
    for node in document["nodes"]:
        if "payload" in node:
            node["payload"] = shown_value(node.get("type", ""), node["payload"])
    return document


def record_change(row: Workflow, before: Mapping[str, Any]) -> None:
    """Writes into the audit log what became different. ``before``: what ``told`` said; empty: it was not there."""
    after = told(row)
    changed = [field for field in after if before.get(field) != after[field]]
    if changed:
        audit.record(
            "workflow.change" if before else "workflow.create",
            row.name,
            before={field: before.get(field) for field in changed} if before else None,
            after={field: after[field] for field in changed},
        )


def told(row: Workflow) -> dict[str, Any]:
    """What the audit log says of a row: arguments of its nodes are not for everybody who reads that."""
    if row._state.adding:
        return {}
    return {"version": row.version, "description": row.description, "nodes": row.nodes.count()}


def _row(name: str) -> Workflow:
    row = Workflow.objects.filter(name=name).first()
    if row is None:
        raise WorkflowNotFound(
            f"There is no stored workflow {quoted(name)}.",
            fix=did_you_mean(str(name), names(), none="None is stored: see 'workflows import'."),
        )
    return row


def _check_storable(wanted: Definition) -> None:
    if len(wanted.name) > LONGEST_NAME:
        raise WorkflowInvalid(f"The workflow's name is longer than {LONGEST_NAME} characters.", fix="Shorten it.")
    if "\\u0000" in msgspec.json.encode(wanted).decode():
        raise WorkflowInvalid("A payload holds the character NUL, which a database cannot keep.", fix="Take it out.")


def _as_stored(row: Workflow, found: Definition) -> StoredWorkflow:
    return StoredWorkflow(
        name=row.name,
        version=row.version,
        definition=found,
        description=row.description,
        changed_at=row.changed_at,
        changed_by=row.changed_by,
    )


def _as_view(row: WorkflowVersion, before: WorkflowVersion | None, is_newest: bool) -> VersionView:
    now = {node.key: node for node in row.definition().nodes}
    old = {node.key: node for node in before.definition().nodes} if before else {}
    return VersionView(
        number=row.number,
        at=row.at,
        by=row.by,
        nodes=row.nodes,
        added=tuple(key for key in now if key not in old) if before else (),
        removed=tuple(key for key in old if key not in now),
        changed=tuple(key for key in now if key in old and now[key] != old[key]),
        is_newest=is_newest,
    )


adefine = twin(define, uses_database=True)
adefinition = twin(definition, uses_database=True)
anames = twin(names, uses_database=True)
aversions = twin(versions, uses_database=True)
aversion = twin(version, uses_database=True)
arestore = twin(restore, uses_database=True)
aforget = twin(forget, uses_database=True)

__all__ = [
    "DefinitionView",
    "Imported",
    "PastRun",
    "StoredWorkflow",
    "Totals",
    "VersionView",
    "WorkflowNotFound",
    "adefine",
    "adefinition",
    "adefinitions",
    "aforget",
    "anames",
    "arestore",
    "aversion",
    "aversions",
    "define",
    "definition",
    "definitions",
    "export",
    "forget",
    "import_",
    "names",
    "record_change",
    "restore",
    "shown",
    "told",
    "version",
    "versions",
]
