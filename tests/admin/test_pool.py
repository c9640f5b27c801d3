"""Pools in the admin: live numbers, slots that reach the workers, edits that outlive an outage."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from jobs.core.job import JobSpec
from jobs.engine import Engine, get_engine
from jobs.models import Pool
from jobs.services.reconciler import Reconciled, reconcile

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import DjangoAssertNumQueries
    from pytest_django.fixtures import Settings as DjangoSettings

    from tests.support.valkey import ValkeyServer

Commit = Callable[[], AbstractContextManager[Any]]

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/pool/"


@pytest.fixture
def away(settings: DjangoSettings, private_valkey: ValkeyServer) -> ValkeyServer:
    """A store that is down, and can be started."""
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    private_valkey.kill()
    return private_valkey


@pytest.fixture
def mail() -> Pool:
    return Pool.objects.create(name="mail")


def change_url(pool: Pool) -> str:
    return reverse("admin:jobs_pool_change", args=[pool.pk])


def cell(html: str, field: str, row: str) -> str:
    """The text of one cell of the list."""
    line = next(part for part in html.split("<tr") if f">{row}<" in part)
    return line.partition(f'class="field-{field}">')[2].partition("<")[0]


def test_the_list_shows_what_goes_on(admin_client: Client, engine: Engine, mail: Pool) -> None:
    engine.jobs.enqueue(JobSpec(type="email.send", pool="mail"), [b"{}"] * 3)
    engine.jobs.enqueue(JobSpec(type="email.send", pool="mail", delay_ms=60_000), [b"{}"])

    html = admin_client.get(LIST).content.decode()

    assert cell(html, "ready", "mail") == "3"
    assert cell(html, "scheduled", "mail") == "1"
    assert cell(html, "running", "mail") == "0"
    assert cell(html, "workers", "mail") == "0"


def test_a_pool_that_was_never_used_has_no_numbers(admin_client: Client, mail: Pool) -> None:
    assert cell(admin_client.get(LIST).content.decode(), "ready", "mail") == "–"


def test_slots_as_declared_and_slots_set_are_told_apart(
    admin_client: Client, settings: DjangoSettings, mail: Pool
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "POOLS": {"mail": 3}}
    declared = cell(admin_client.get(LIST).content.decode(), "slots_in_force", "mail")
    Pool.objects.filter(name="mail").update(slots=0)

    assert declared == "3 (as declared)"
    assert cell(admin_client.get(LIST).content.decode(), "slots_in_force", "mail") == "0"


def test_the_number_of_queries_does_not_grow_with_the_number_of_pools(
    admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    Pool.objects.bulk_create(Pool(name=f"pool-{number}") for number in range(50))

    with django_assert_max_num_queries(7):
        admin_client.get(LIST)


def test_the_list_survives_a_store_that_is_away_and_says_so(
    admin_client: Client, mail: Pool, away: ValkeyServer
) -> None:
    response = admin_client.get(LIST)

    html = response.content.decode()
    assert response.status_code == 200
    assert "the store is unreachable" in html
    assert cell(html, "ready", "mail") == "–"


def test_saved_slots_are_in_force_once_committed(
    admin_client: Client,
    engine: Engine,
    mail: Pool,
    commit: Commit,
) -> None:
    with commit():
        admin_client.post(change_url(mail), {"description": "Letters", "slots": "4"})

    assert engine.pools.slots("mail") == 4


def test_a_save_that_is_rolled_back_pushes_nothing(admin_client: Client, engine: Engine, mail: Pool) -> None:
    admin_client.post(change_url(mail), {"description": "", "slots": "4"})  # the test's transaction never commits

    assert engine.pools.configured() == {}


@pytest.mark.django_db(transaction=True)
def test_a_save_while_the_store_is_away_is_kept_said_and_carried_over_later(
    admin_client: Client, mail: Pool, away: ValkeyServer
) -> None:
    response = admin_client.post(change_url(mail), {"description": "", "slots": "4"}, follow=True)

    mail.refresh_from_db()
    assert mail.slots == 4
    assert "Saved, but not yet in force: the store is unreachable" in response.content.decode()

    away.start()
    reconcile(get_engine())
    assert get_engine().pools.slots("mail") == 4


@pytest.mark.django_db(transaction=True)
def test_values_that_the_engine_refuses_are_said(
    admin_client: Client, mail: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Reconciled(refused={"pool mail": "too many"})
    monkeypatch.setattr("jobs.services.reconciler.push_pools", lambda names: refused)

    response = admin_client.post(change_url(mail), {"description": "", "slots": "4"}, follow=True)

    assert "Saved, but the engine refused the values for pool mail: too many" in response.content.decode()


@pytest.mark.parametrize("slots", ["-1", "1001", "many"])
def test_impossible_slots_are_refused_beside_the_field(admin_client: Client, mail: Pool, slots: str) -> None:
    response = admin_client.post(change_url(mail), {"description": "", "slots": slots})

    assert response.status_code == 200
    assert response.context["adminform"].form.errors.keys() == {"slots"}


def test_a_new_pool_needs_a_good_name_and_keeps_it(admin_client: Client, mail: Pool) -> None:
    refused = admin_client.post(f"{LIST}add/", {"name": "no spaces", "slots": ""})
    admin_client.post(f"{LIST}add/", {"name": "letters", "slots": ""})
    admin_client.post(change_url(mail), {"name": "renamed", "description": "", "slots": ""})

    assert refused.context["adminform"].form.errors.keys() == {"name"}
    assert Pool.objects.filter(name="letters").exists()
    assert not Pool.objects.filter(name="renamed").exists()


def test_deleting_a_pool_takes_its_slots_back(
    admin_client: Client,
    engine: Engine,
    mail: Pool,
    commit: Commit,
) -> None:
    engine.pools.configure("mail", slots=4)

    with commit():
        admin_client.post(reverse("admin:jobs_pool_delete", args=[mail.pk]), {"post": "yes"})

    assert not Pool.objects.filter(name="mail").exists()
    assert engine.pools.configured() == {}


def test_deleting_several_at_once_takes_their_slots_back(
    admin_client: Client,
    engine: Engine,
    mail: Pool,
    commit: Commit,
) -> None:
    engine.pools.configure("mail", slots=4)

    with commit():
        admin_client.post(LIST, {"action": "delete_selected", "_selected_action": [mail.pk], "post": "yes"})

    assert engine.pools.configured() == {}


def test_a_pool_that_code_or_settings_name_cannot_be_deleted(admin_client: Client) -> None:
    pool, _ = Pool.objects.get_or_create(name="default")

    response = admin_client.post(reverse("admin:jobs_pool_delete", args=[pool.pk]), {"post": "yes"})

    assert response.status_code == 403
    assert Pool.objects.filter(name="default").exists()
