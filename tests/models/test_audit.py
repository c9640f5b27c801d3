"""Entries of the audit log: added, read, and nothing else."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from jobs.models import AuditEntry
from jobs.models.audit import AppendOnly

pytestmark = pytest.mark.django_db


@pytest.fixture
def entry() -> AuditEntry:
    return AuditEntry.objects.create(
        who="ana", source="command", action="pool.scale", target="letters", before={"slots": 1}, after={"slots": 2}
    )


def test_an_entry_says_who_did_what_to_what(entry: AuditEntry) -> None:
    assert str(entry).endswith("ana: pool.scale letters")
    assert AuditEntry.objects.get().after == {"slots": 2}


def test_no_way_through_the_orm_changes_or_removes_one(entry: AuditEntry) -> None:
    entry.who = "nobody"
    for change in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(who="nobody"),
        lambda: AuditEntry.objects.bulk_update([entry], ["who"]),
        lambda: AuditEntry.objects.update_or_create(pk=entry.pk, defaults={"who": "nobody"}),
        lambda: AuditEntry.objects.bulk_create(
            [AuditEntry(pk=entry.pk, who="nobody")], update_conflicts=True, update_fields=["who"], unique_fields=["id"]
        ),
        lambda: AuditEntry._base_manager.filter(pk=entry.pk).delete(),
    ):
        with pytest.raises(AppendOnly):
            change()

    assert AuditEntry.objects.get().who == "ana"


def test_an_entry_that_is_made_with_the_id_of_another_does_not_replace_it(entry: AuditEntry) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        AuditEntry(pk=entry.pk, who="nobody", action="pool.scale").save()

    assert AuditEntry.objects.get().who == "ana"


def test_the_newest_stands_first(entry: AuditEntry) -> None:
    newer = AuditEntry.objects.create(who="ben", source="python", action="pool.pause", target="letters")

    assert list(AuditEntry.objects.all()) == [newer, entry]


def test_lists_of_an_actor_or_a_target_use_an_index() -> None:
    with connection.cursor() as cursor:
        indexed = {
            tuple(facts["columns"])
            for facts in connection.introspection.get_constraints(cursor, AuditEntry._meta.db_table).values()
            if facts["index"]
        }

    assert {("at",), ("action",), ("target",)} <= indexed
