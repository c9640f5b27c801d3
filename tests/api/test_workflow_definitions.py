"""Stored workflows: kept by name, in versions, checked like what is started."""

from __future__ import annotations

from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from jobs import Workflow, job, workflows
from jobs.exceptions import WorkflowInvalid
from jobs.models import AuditEntry, WorkflowNode

pytestmark = pytest.mark.django_db


@job("stored.step")
def step(day: str = "", *, secret: str = "") -> None: ...


def nightly(*keys: str, **more: Any) -> Workflow:
    flow = Workflow("nightly")
    flow.chain(*(flow.add(key, step, **more) for key in keys))
    return flow


def test_what_is_stored_is_found_by_its_name() -> None:
    made = workflows.define(nightly("a", "b"), description="Each night.", by="ana")

    found = workflows.definition("nightly")

    assert found == made
    assert (found.version, found.description, found.changed_by) == (1, "Each night.", "ana")
    assert found.definition == nightly("a", "b").definition()
    assert found.as_dict()["definition"] == nightly("a", "b").as_dict()
    assert workflows.names() == ["nightly"]


def test_storing_the_same_again_is_no_version() -> None:
    workflows.define(nightly("a", "b"), by="ana")

    assert workflows.define(nightly("a", "b"), by="ben").version == 1
    assert workflows.define(nightly("a", "b"), by="ben").changed_by == "ana"


def test_each_version_says_what_it_made_different() -> None:
    workflows.define(nightly("a", "b", "c"))
    workflows.define(nightly("a", "c", "d"))

    newest, first = workflows.versions("nightly")

    assert (newest.added, newest.removed, newest.changed) == (("d",), ("b",), ("c",))
    assert (newest.number, newest.is_newest, first.is_newest) == (2, True, False)
    assert first.as_dict()["added"] == ()


def test_going_back_is_a_version_of_its_own() -> None:
    workflows.define(nightly("a", "b"))
    workflows.define(nightly("a"))

    assert workflows.restore("nightly", 1).version == 3
    assert workflows.definition("nightly").definition == workflows.version("nightly", 1)


def test_a_bulk_change_of_its_rows_is_seen_when_it_is_asked_for() -> None:
    workflows.define(nightly("a", "b"))
    WorkflowNode.objects.filter(key="b").update(payload={"day": "2026-01-01"})

    found = workflows.definition("nightly")

    assert found.version == 2
    assert found.definition.nodes[1].payload == {"day": "2026-01-01"}


def test_what_cannot_run_is_not_stored() -> None:
    with pytest.raises(WorkflowInvalid, match="Node 'a': No job type 'nope'"):
        workflows.define({"name": "nightly", "nodes": [{"key": "a", "type": "nope"}]})
    with pytest.raises(WorkflowInvalid, match="no spaces at the ends"):
        workflows.define({"name": " nightly", "nodes": [{"key": "a", "type": "stored.step"}]})
    with pytest.raises(WorkflowInvalid, match="NUL"):
        workflows.define({"name": "n", "nodes": [{"key": "a", "type": "stored.step", "payload": {"day": "\0"}}]})

    assert workflows.names() == []


def test_a_name_that_is_not_stored_is_told_with_the_nearest() -> None:
    workflows.define(nightly("a"))

    with pytest.raises(workflows.WorkflowNotFound) as unknown:
        workflows.definition("nigthly")

    assert unknown.value.fix == "Did you mean 'nightly'?"
    with pytest.raises(workflows.WorkflowNotFound):
        workflows.version("nightly", 7)


def test_what_is_deleted_keeps_its_history() -> None:
    workflows.define(nightly("a"))
    workflows.forget("nightly")

    assert workflows.names() == []
    assert [version.number for version in workflows.versions("nightly")] == [1]


def test_files_are_checked_as_a_whole_and_told_apart_by_what_became_of_them() -> None:
    workflows.define(nightly("a"))
    kept = workflows.export()
    other = {**nightly("x").as_dict(), "name": "other"}

    changed = nightly("a", "b").as_dict()
    assert workflows.import_([*kept, other], dry_run=True) == (["other"], [], ["nightly"])
    assert workflows.names() == ["nightly"]
    assert workflows.import_([changed, other]) == (["other"], ["nightly"], [])
    with pytest.raises(WorkflowInvalid):
        workflows.import_([{**other, "name": "third"}, {"name": "bad", "nodes": []}])
    assert workflows.names() == ["nightly", "other"]


def test_the_audit_log_says_who_did_what_and_no_arguments() -> None:
    flow = Workflow("nightly")
    flow.add("a", step, {"secret": "hunter2"})
    workflows.define(flow)
    workflows.define(nightly("a", "b"))
    workflows.forget("nightly")

    entries = [*AuditEntry.objects.order_by("id")]

    assert [entry.action for entry in entries] == ["workflow.create", "workflow.change", "workflow.delete"]
    assert entries[1].before == {"version": 1, "nodes": 1}
    assert entries[1].after == {"version": 2, "nodes": 2}
    assert "hunter2" not in "".join(str((entry.before, entry.after)) for entry in entries)


@pytest.mark.django_db(transaction=True)
async def test_all_of_it_has_async_twins() -> None:
    await workflows.adefine(nightly("a"))

    assert (await workflows.adefinition("nightly")).version == 1
    assert [view.number for view in await workflows.aversions("nightly")] == [1]
    await workflows.aforget("nightly")
    assert await workflows.anames() == []
    await sync_to_async(connections.close_all)()  # of the thread in which they ran
