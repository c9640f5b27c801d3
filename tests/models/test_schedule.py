"""The row of a schedule: what it refuses, what it stamps, and what its history keeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from django.core import serializers
from django.core.exceptions import ValidationError
from django.test import override_settings

from jobs import job
from jobs.api.schedule_history import history
from jobs.models import Schedule, ScheduleChange
from jobs.registry import registry

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def report() -> Iterator[None]:
    """A job type to be scheduled."""
    with registry.restored():

        @job("models.report")
        def report(day: str = "today", *, copies: int = 1) -> None: ...

        yield


def schedule(**fields: Any) -> Schedule:
    return Schedule(**{"name": "nightly", "job_type": "models.report", "cron": "30 2 * * *", **fields})


def test_a_schedule_is_saved_with_one_spelling_of_its_expression() -> None:
    row = schedule(cron=" 0  9 * * fri ")
    row.save()

    row.refresh_from_db()
    assert row.cron == "0 9 * * FRI"
    assert row.version == 1


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        pytest.param({"cron": "0 0 31 2 *"}, "cron", "no such day ever comes", id="an impossible day"),
        pytest.param(
            {"cron": "59/15 * * * *"}, "cron", "Write '59 * * * *'", id="a form that programs read differently"
        ),
        pytest.param({"cron": "1 " * 200}, "cron", "255", id="a long expression"),
        pytest.param({"cron": ""}, "cron", "empty", id="no expression"),
        pytest.param({"job_type": "models.reprot"}, "job_type", "Did you mean 'models.report'?", id="an unknown type"),
        pytest.param({"job_type": ""}, "job_type", "does not say what it starts", id="nothing to start"),
        pytest.param({"workflow": "w"}, "job_type", "Leave one of them empty", id="a job type and a workflow"),
        pytest.param({"job_type": "", "workflow": "w"}, "workflow", "None is stored", id="an unknown workflow"),
        pytest.param({"payload": {"dya": "x"}}, "payload", "Did you mean 'day'?", id="an unknown argument"),
        pytest.param({"payload": {"copies": "two"}}, "payload", "copies", id="a value of another type"),
        pytest.param({"payload": [1]}, "payload", "object", id="a payload that is no object"),
        pytest.param({"timezone": "Europe/Pari"}, "timezone", "Did you mean 'Europe/Paris'?", id="an unknown zone"),
        pytest.param({"kind": "interval", "cron": ""}, "interval_seconds", "needs", id="an interval without length"),
        pytest.param(
            {"kind": "interval", "cron": "", "interval_seconds": 0.01}, "interval_seconds", "shorter", id="a tiny one"
        ),
        pytest.param({"kind": "interval", "interval_seconds": 5}, "cron", "nothing", id="two kinds at once"),
        pytest.param({"kind": "once", "cron": ""}, "run_at", "moment", id="once without its moment"),
        pytest.param(
            {"starts_at": datetime(2026, 2, 1, tzinfo=UTC), "ends_at": datetime(2026, 1, 1, tzinfo=UTC)},
            "ends_at",
            "before it starts",
            id="an end before the start",
        ),
        pytest.param(
            {"kind": "interval", "cron": "", "interval_seconds": 60, "jitter_seconds": 60},
            "jitter_seconds",
            "as long as",
            id="a jitter as long as the interval",
        ),
        pytest.param({"priority": 101}, "priority", "100", id="a priority out of range"),
        pytest.param({"name": " nightly"}, "name", "spaces", id="a name with spaces at its end"),
    ],
)
def test_what_could_not_fire_is_refused_with_a_reason_at_its_field(
    fields: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        schedule(**fields).save()

    assert words in " ".join(refused.value.message_dict[field])
    assert not Schedule.objects.exists()


@override_settings(TIME_ZONE="America/Santiago")
def test_the_zone_is_the_projects_where_none_is_given() -> None:
    assert schedule().timezone == "America/Santiago"


def test_each_change_of_what_it_is_leaves_an_entry_with_who_and_what() -> None:
    row = schedule(changed_by="ana")
    row.save()
    row.cron, row.changed_by = "0 3 * * *", "ben"
    row.save()
    row.pause(by="cleo", reason="stocktaking")
    row.save()
    row.resume(by="ana")
    row.save()

    entries = [(change.action, change.by, change.snapshot["cron"], change.version) for change in row.changes.all()]
    assert entries == [
        ("resumed", "ana", "0 3 * * *", 4),
        ("paused", "cleo", "0 3 * * *", 3),
        ("changed", "ben", "0 3 * * *", 2),
        ("created", "ana", "30 2 * * *", 1),
    ]
    assert len(row.pauses) == 1
    assert not row.is_paused


def test_a_save_that_changes_nothing_is_no_change() -> None:
    row = schedule()
    row.save()
    row.save()

    assert row.version == 1
    assert row.changes.count() == 1


def test_each_entry_says_what_it_made_different_from_the_one_before_however_many_there_are() -> None:
    Schedule.objects.bulk_create([schedule()])
    row = Schedule.objects.get()
    assert history(row, 5) == []

    row.save()
    row.cron = "0 2 * * *"
    row.save()
    assert len(history(row, 5)) == 1

    row.cron = "0 3 * * *"
    row.save()
    newest, oldest = history(row, 5)
    assert ("0 2 * * *", "0 3 * * *") in [(found.before, found.after) for found in newest.differences]
    assert (newest.is_newest, oldest.is_newest) == (True, False)
    assert [entry.id for entry in history(row, 1)] == [newest.id]


def test_the_history_outlives_the_schedule() -> None:
    row = schedule()
    row.save()
    row.delete()

    [change] = ScheduleChange.objects.filter(name="nightly")
    assert change.fields["cron"] == "30 2 * * *"


def test_a_bulk_update_is_stamped_and_what_firing_writes_is_not() -> None:
    row = schedule()
    row.save()
    before = row.changed_at

    Schedule.objects.filter(name="nightly").update(firings=7, last_fired_at=datetime(2026, 1, 1, tzinfo=UTC))
    row.refresh_from_db()
    assert (row.version, row.changed_at) == (1, before)

    Schedule.objects.filter(name="nightly").update(cron="0 4 * * *")
    row.refresh_from_db()
    assert row.version == 2
    assert row.changed_at > before


def test_an_edit_of_what_the_job_gets_does_not_move_the_rhythm() -> None:
    row = schedule()
    row.save()
    before = row.stored()
    row.payload, row.priority, row.grace_seconds = {"copies": 2}, 5, 60
    row.save()

    assert row.stored().rhythm == before.rhythm
    assert row.stored().digest != before.digest

    row.timezone = "Europe/Paris"
    row.save()
    assert row.stored().rhythm != before.rhythm


def test_the_name_moves_the_rhythm_only_where_h_draws_from_it() -> None:
    assert schedule(name="a").stored().rhythm == schedule(name="b").stored().rhythm
    assert schedule(name="a", cron="H 3 * * *").stored().rhythm != schedule(name="b", cron="H 3 * * *").stored().rhythm


def test_a_fixture_finds_the_row_by_its_name() -> None:
    row = schedule()
    row.save()
    written = serializers.serialize("json", [row], use_natural_primary_keys=True)
    row.delete()

    for loaded in serializers.deserialize("json", written):
        loaded.save()
    assert Schedule.objects.get(name="nightly").cron == "30 2 * * *"
