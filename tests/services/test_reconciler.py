"""The code's job types become rows, and rows become what the engine goes by, whatever happened in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection

from jobs.engine import Engine, TypeOverrides, get_engine
from jobs.exceptions import OptionInvalid, StoreUnavailable, WrongState
from jobs.models import JobType, Pool
from jobs.registry import JobType as RegisteredType
from jobs.registry import registry
from jobs.services import reconciler
from jobs.services.reconciler import Reconciled, Reconciler, reconcile, register

if TYPE_CHECKING:
    from pytest_django import DjangoAssertNumQueries
    from pytest_django.fixtures import Settings as DjangoSettings

    from tests.support.valkey import ValkeyServer

pytestmark = pytest.mark.django_db


def send(to: str) -> None:
    """Sends one message.

    In more than one line.
    """


def declare(name: str = "email.send", **options: Any) -> None:
    registry.add(RegisteredType(send, name=name, **options))


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No job types but the test's own; and no rows of those that the migration found in the code."""
    with registry.restored():
        monkeypatch.setattr(registry, "_types", {})
        JobType.objects.all().delete()
        Pool.objects.all().delete()
        yield


# Code → rows ---------------------------------------------------------------------------------------------------------


def test_a_registered_type_gets_a_row_with_what_it_declares() -> None:
    declare(pool="critical", priority=5, max_retries=2, timeout=9)

    assert register().added == ("email.send",)

    row = JobType.objects.get(name="email.send")
    assert row.function == f"{__name__}.send"
    assert row.description.startswith("Sends one message.")
    assert row.declared == {"pool": "critical", "priority": 5, "max_retries": 2, "timeout": 9}
    assert row.registered
    assert row.last_seen


def test_registering_again_changes_nothing(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    for number in range(20):
        declare(f"type.{number}")
    register()

    with django_assert_max_num_queries(8):
        done = register()

    assert (done.added, done.changed, done.gone, done.pools) == ((), (), (), ())


def test_a_changed_declaration_is_taken_over_and_overrides_stay() -> None:
    declare(priority=1)
    register()
    JobType.objects.update(priority=50, enabled=False)
    registry._types.clear()
    declare(priority=2)

    assert register().changed == ("email.send",)

    row = JobType.objects.get()
    assert row.declared["priority"] == 2
    assert (row.priority, row.enabled) == (50, False)


def test_a_type_that_left_the_code_keeps_its_row_and_may_come_back() -> None:
    declare()
    register()
    registry._types.clear()

    assert register().gone == ("email.send",)
    assert register().gone == ()
    assert not JobType.objects.get().registered

    declare()
    register()
    assert JobType.objects.get().registered


def test_pools_that_code_or_settings_name_get_a_row(settings: DjangoSettings) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "POOLS": {"mail": 3}}
    Pool.objects.create(name="mail", slots=7)
    declare(pool="critical")

    assert register().pools == ("critical", "default")

    assert Pool.objects.get(name="mail").slots == 7


def test_migrate_registers_what_the_code_has() -> None:
    declare()

    call_command("migrate", verbosity=0)

    assert JobType.objects.get().name == "email.send"


def test_migrate_does_not_need_redis(settings: DjangoSettings, private_valkey: ValkeyServer) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    private_valkey.kill()
    declare()

    call_command("migrate", verbosity=0)

    assert JobType.objects.exists()


def test_migrating_back_to_nothing_is_not_held_up_by_tables_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    declare()
    with monkeypatch.context() as migrated_back:
        migrated_back.setattr(JobType._meta, "db_table", "nowhere")
        reconciler._after_migrate(using="default")

    assert not JobType.objects.exists()


def test_a_database_that_does_not_hold_our_tables_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    declare()
    monkeypatch.setattr(reconciler.router, "allow_migrate_model", lambda *_: False)

    reconciler._after_migrate(using="default")

    assert not JobType.objects.exists()


# Rows → engine -------------------------------------------------------------------------------------------------------


def test_overrides_reach_the_engine(engine: Engine) -> None:
    JobType.objects.create(name="email.send", pool="slow", priority=-3, max_retries=0, timeout=2.5)
    JobType.objects.create(name="report.build", enabled=False)
    JobType.objects.create(name="as.declared")
    Pool.objects.create(name="mail", slots=4)
    Pool.objects.create(name="other")

    assert reconcile(engine) == Reconciled(pushed=3)

    assert engine.types.get("email.send") == TypeOverrides(pool="slow", priority=-3, max_retries=0, timeout=2.5)
    assert engine.types.disabled() == {"report.build"}
    assert engine.types.all().keys() == {"email.send", "report.build"}
    assert engine.pools.configured() == {"mail": 4}


def test_reconciling_again_writes_nothing(engine: Engine) -> None:
    JobType.objects.create(name="email.send", timeout=30)
    Pool.objects.create(name="mail", slots=0)
    reconcile(engine)

    assert reconcile(engine) == Reconciled()


def test_a_flushed_redis_is_filled_again(engine: Engine) -> None:
    JobType.objects.create(name="email.send", enabled=False)
    Pool.objects.create(name="mail", slots=4)
    reconcile(engine)
    for key in engine.store.client.scan_iter(match=f"{engine.store.namespace}:*"):
        engine.store.client.delete(key)

    assert reconcile(engine) == Reconciled(pushed=2)

    assert engine.pools.configured() == {"mail": 4}


def test_a_bulk_update_and_a_deleted_row_are_picked_up(engine: Engine) -> None:
    JobType.objects.create(name="email.send", priority=1)
    JobType.objects.create(name="report.build", priority=1)
    Pool.objects.create(name="mail", slots=4)
    reconcile(engine)
    JobType.objects.filter(name="email.send").update(priority=2)
    JobType.objects.filter(name="report.build").delete()
    Pool.objects.update(slots=None)

    assert reconcile(engine) == Reconciled(pushed=1, cleared=2)

    assert engine.types.all() == {"email.send": TypeOverrides(priority=2)}
    assert engine.pools.configured() == {}


def test_a_fixture_finds_its_rows_by_name_and_is_picked_up(engine: Engine, tmp_path: Path) -> None:
    JobType.objects.create(name="email.send", priority=7)
    Pool.objects.create(name="mail", slots=4)
    fixture = tmp_path / "overrides.json"
    call_command("dumpdata", "jobs", natural_primary=True, output=str(fixture))
    JobType.objects.update(priority=None)
    Pool.objects.update(slots=None)

    call_command("loaddata", str(fixture), verbosity=0)

    assert JobType.objects.count() == 1
    assert reconcile(engine) == Reconciled(pushed=2)
    assert engine.types.get("email.send").priority == 7


def test_what_was_set_behind_the_rows_back_is_undone(engine: Engine) -> None:
    engine.types.set("email.send", {"enabled": False})
    engine.pools.configure("mail", slots=9)

    assert reconcile(engine) == Reconciled(cleared=2)

    assert engine.types.all() == {}
    assert engine.pools.configured() == {}


def test_a_row_that_the_engine_refuses_does_not_hold_up_the_others(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    Pool.objects.create(name="not a pool", slots=1)
    Pool.objects.create(name="mail", slots=2)

    done = reconcile(engine)

    assert (done.pushed, list(done.refused)) == (1, ["pool not a pool"])
    assert "not a pool" in caplog.text
    assert engine.pools.configured() == {"mail": 2}


def test_one_comparison_costs_two_queries_whatever_the_number_of_rows(
    engine: Engine, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    JobType.objects.bulk_create(JobType(name=f"type.{number}", priority=1) for number in range(50))
    reconcile(engine)

    with django_assert_num_queries(2):
        assert reconcile(engine) == Reconciled()


def test_a_redis_that_is_away_is_an_error_and_the_next_comparison_heals(
    settings: DjangoSettings, private_valkey: ValkeyServer
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    JobType.objects.create(name="email.send", enabled=False)
    private_valkey.kill()
    engine = get_engine()
    with engine.store.budget(0.3), pytest.raises(StoreUnavailable):
        reconcile(engine)

    private_valkey.start()

    assert reconcile(engine) == Reconciled(pushed=1)


# Single changes ------------------------------------------------------------------------------------------------------


def test_only_the_named_rows_are_pushed(engine: Engine) -> None:
    JobType.objects.create(name="email.send", priority=1)
    JobType.objects.create(name="report.build", priority=1)

    assert reconciler.push_types(["email.send"]) == Reconciled(pushed=1)

    assert engine.types.all().keys() == {"email.send"}


def test_pushing_a_row_that_is_gone_clears_it(engine: Engine) -> None:
    engine.types.set("email.send", {"priority": 1})
    engine.pools.configure("mail", slots=1)

    assert reconciler.push_types(["email.send"]) == Reconciled(cleared=1)
    assert reconciler.push_pools(["mail"]) == Reconciled(cleared=1)

    assert engine.types.all() == {}
    assert engine.pools.configured() == {}


def test_scaling_a_pool_sets_row_and_engine_so_that_it_stays(engine: Engine) -> None:
    reconciler.change_pool("mail", slots=4)

    assert Pool.objects.get(name="mail").slots == 4
    assert engine.pools.slots("mail") == 4
    assert reconcile(engine) == Reconciled()


def test_scaling_while_redis_is_away_is_said_and_done_later(
    settings: DjangoSettings, private_valkey: ValkeyServer
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    private_valkey.kill()
    with get_engine().store.budget(0.3), pytest.raises(StoreUnavailable):
        reconciler.change_pool("mail", slots=4)

    private_valkey.start()
    reconcile(get_engine())

    assert get_engine().pools.slots("mail") == 4


def test_what_a_database_that_cannot_be_written_says_holds_and_nothing_is_said_to_be_done(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    reconciler.change_pool("mail", slots=4)

    def save(_: Pool) -> None:
        raise OperationalError("attempt to write a readonly database")

    monkeypatch.setattr(Pool, "save", save)
    with pytest.raises(WrongState, match="readonly"):
        reconciler.change_pool("mail", slots=0)

    assert engine.pools.slots("mail") == 4


@pytest.mark.parametrize(("name", "slots"), [("not a pool", 1), ("mail", -1), ("mail", 1001)])
def test_impossible_pools_and_slots_are_refused(name: str, slots: int) -> None:
    with pytest.raises(OptionInvalid):
        reconciler.change_pool(name, slots=slots)

    assert not Pool.objects.exists()


# The service ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_the_first_tick_registers_and_every_tick_reconciles(engine: Engine) -> None:
    declare()
    service = Reconciler(engine)

    first = service.tick()
    JobType.objects.update(enabled=False)
    second = service.tick()

    assert first == {"pushed": 0, "cleared": 0, "refused": 0}
    assert second == {"pushed": 1, "cleared": 0, "refused": 0}
    assert engine.types.disabled() == {"email.send"}


@pytest.mark.django_db(transaction=True)
def test_a_comparison_that_was_asked_for_and_failed_is_made_later(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    JobType.objects.create(name="email.send", enabled=False)
    service = Reconciler(engine)
    service.tick()
    engine.types.clear("email.send")
    service.hear()
    with monkeypatch.context() as away:
        away.setattr(reconciler, "reconcile", Mock(side_effect=StoreUnavailable("away")))
        with pytest.raises(StoreUnavailable):
            service.tick()

    assert service.tick()["pushed"] == 1


@pytest.mark.django_db(transaction=True)
def test_the_store_is_not_asked_again_while_the_rows_are_the_same_and_nobody_told_of_a_change(engine: Engine) -> None:
    JobType.objects.create(name="email.send", enabled=False)
    service = Reconciler(engine)
    service.tick()
    engine.types.clear("email.send")

    assert service.tick()["pushed"] == 0
    service.hear()
    assert service.tick()["pushed"] == 1


@pytest.mark.django_db(transaction=True)
def test_a_tick_survives_a_database_connection_that_broke(engine: Engine) -> None:
    service = Reconciler(engine)
    service.tick()
    connection.ensure_connection()
    connection.connection.close()
    connection.errors_occurred = True

    assert service.tick() == {"pushed": 0, "cleared": 0, "refused": 0}


@pytest.mark.django_db(transaction=True)
def test_a_database_that_is_away_is_said_once_and_waited_for(
    engine: Engine, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    JobType.objects.create(name="email.send", enabled=False)
    service = Reconciler(engine)
    with monkeypatch.context() as away:
        away.setattr(JobType._meta, "db_table", "nowhere")
        for _ in range(3):
            assert service.tick() == {"pushed": 0, "cleared": 0, "refused": 0}

    assert caplog.text.count("until the database can be read") == 1
    assert service.tick()["pushed"] == 1
