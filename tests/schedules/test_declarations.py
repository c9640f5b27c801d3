"""Schedules that the code declares own their rows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs import Cron, Interval, job
from jobs.exceptions import OptionInvalid
from jobs.models import Schedule
from jobs.registry import registry
from jobs.services.declarations import WITHDRAWN_WORDS, declare
from tests.schedules.conftest import World


def test_a_declared_schedule_owns_its_row_and_fires(world: World) -> None:
    @job("schedules.nightly", schedule=Cron("30 2 * * *", timezone="Europe/Paris"))
    def nightly() -> None: ...

    @job("schedules.often", schedule=Interval(60))
    def often() -> None: ...

    carrying, _ = world.host()
    row = Schedule.objects.get(name="schedules.nightly")
    assert (row.owner, row.cron, row.timezone, row.job_type) == ("code", "30 2 * * *", "Europe/Paris", row.name)
    Schedule.objects.filter(name="schedules.often").update(created_at=world.now)
    assert carrying.is_checked
    world.carry()
    world.run(120)
    assert len(world.fired("schedules.often")) == 2


def test_a_changed_declaration_changes_its_row_and_an_unchanged_one_does_not(world: World) -> None:
    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    declare()
    declare()
    assert Schedule.objects.get(name="schedules.nightly").version == 1

    del registry._types["schedules.nightly"]
    job("schedules.nightly", schedule=Cron("30 3 * * *"))(lambda: None)
    declare()
    row = Schedule.objects.get(name="schedules.nightly")
    assert (row.cron, row.version, row.changed_by) == ("30 3 * * *", 2, "code")


def test_a_declaration_that_no_host_has_any_more_is_withdrawn_and_comes_back_with_the_code(world: World) -> None:
    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    world.host()
    del registry._types["schedules.nightly"]
    Schedule.objects.update(declared_at=world.now - timedelta(days=365 * 3))
    world.definitions._declared_at = float("-inf")
    world.carry()
    row = Schedule.objects.get(name="schedules.nightly")
    assert (row.enabled, row.error) == (False, WITHDRAWN_WORDS)

    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    world.host()
    row.refresh_from_db()
    assert (row.enabled, row.error) == (True, "")


def test_a_schedule_of_a_person_keeps_its_name(world: World) -> None:
    world.schedule("schedules.nightly")
    job("schedules.nightly", schedule=Cron("30 2 * * *"))(lambda: None)
    declare()

    assert Schedule.objects.get(name="schedules.nightly").owner == "admin"


def test_a_declared_schedule_needs_no_arguments(world: World) -> None:
    with pytest.raises(OptionInvalid, match="needs arguments"):
        job("schedules.needy", schedule=Interval(60))(lambda to: None)
    with pytest.raises(OptionInvalid, match="expected Cron or Interval"):
        job("schedules.odd", schedule="* * * * *")(lambda: None)  # type: ignore[arg-type]
