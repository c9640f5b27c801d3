"""Job types in the admin: what the code says, what is overridden, and that overriding works."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from jobs.core.job import JobSpec
from jobs.engine import Engine, TypeOverrides
from jobs.models import JobType, Pool

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import DjangoAssertNumQueries
    from pytest_django.fixtures import Settings as DjangoSettings

    from tests.support.valkey import ValkeyServer

Commit = Callable[[], AbstractContextManager[Any]]

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/jobtype/"
DECLARED = {"pool": "critical", "priority": 5, "max_retries": 3, "timeout": 30.0}
FORM = {"enabled": "on", "pool": "", "priority": "", "max_retries": "", "timeout": ""}


@pytest.fixture
def letter() -> JobType:
    return JobType.objects.create(name="letter.print", function="post.jobs.letter", declared=DECLARED)


def change_url(row: JobType) -> str:
    return reverse("admin:jobs_jobtype_change", args=[row.pk])


def act(client: Client, action: str, *rows: JobType) -> str:
    """Submits a list action and answers the page that follows."""
    response = client.post(LIST, {"action": action, "_selected_action": [row.pk for row in rows]}, follow=True)
    return response.content.decode()


def test_the_list_shows_what_is_in_force_and_how_it_went(admin_client: Client, engine: Engine, letter: JobType) -> None:
    JobType.objects.update(priority=9)
    engine.jobs.enqueue(JobSpec(type="letter.print"), [b"{}"])

    html = admin_client.get(LIST, {"q": "letter"}).content.decode()

    assert '<td class="field-overridden">priority 9 (declared: 5)</td>' in html
    assert '<td class="field-pool_in_force">critical</td>' in html
    assert '<td class="field-succeeded">0</td>' in html


def test_the_number_of_queries_does_not_grow_with_the_number_of_types(
    admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    JobType.objects.bulk_create(JobType(name=f"type.{number}", declared=DECLARED) for number in range(80))

    with django_assert_max_num_queries(7):
        admin_client.get(LIST)


def test_the_list_survives_a_store_that_hangs(
    admin_client: Client, letter: JobType, settings: DjangoSettings, private_valkey: ValkeyServer
) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    private_valkey.stop()

    response = admin_client.get(LIST)

    private_valkey.cont()
    assert response.status_code == 200
    assert "the store is unreachable" in response.content.decode()


@pytest.mark.parametrize(("overridden", "names"), [("yes", {"a", "b"}), ("no", {"c"})])
def test_overridden_types_can_be_found(admin_client: Client, overridden: str, names: set[str]) -> None:
    JobType.objects.all().delete()
    JobType.objects.create(name="a", enabled=False)
    JobType.objects.create(name="b", max_retries=0)
    JobType.objects.create(name="c")

    page = admin_client.get(LIST, {"overridden": overridden})

    assert {row.name for row in page.context["cl"].result_list} == names


def test_the_form_shows_the_declared_values_where_nothing_is_overridden(admin_client: Client, letter: JobType) -> None:
    html = admin_client.get(change_url(letter)).content.decode()

    assert all(f'placeholder="{value}"' in html for value in ("critical", "5", "3", "30"))
    assert "post.jobs.letter" in html


def test_pages_keep_to_a_strict_content_security_policy(admin_client: Client, letter: JobType) -> None:
    for url in (LIST, change_url(letter), "/admin/jobs/pool/", "/admin/jobs/pool/add/"):
        html = admin_client.get(url).content.decode()

        assert not re.search(r"<script(?![^>]*(src=|application/json))", html), url
        assert not re.search(r"\son\w+=|\sstyle=", html), url


@pytest.mark.parametrize(
    ("changes", "overrides"),
    [
        ({"pool": "slow"}, TypeOverrides(pool="slow")),
        ({"priority": "-7", "timeout": "0.5"}, TypeOverrides(priority=-7, timeout=0.5)),
        ({"max_retries": "0", "enabled": ""}, TypeOverrides(max_retries=0, enabled=False)),
    ],
)
def test_saved_overrides_are_in_force_once_committed(
    admin_client: Client,
    engine: Engine,
    letter: JobType,
    commit: Commit,
    changes: dict[str, Any],
    overrides: TypeOverrides,
) -> None:
    form = {name: value for name, value in (FORM | changes).items() if name != "enabled" or value}
    with commit():
        admin_client.post(change_url(letter), form)

    assert engine.types.get("letter.print") == overrides


def test_emptying_the_fields_gives_the_code_its_say_back(
    admin_client: Client,
    engine: Engine,
    letter: JobType,
    commit: Commit,
) -> None:
    JobType.objects.update(priority=9)
    engine.types.set("letter.print", {"priority": 9})

    with commit():
        admin_client.post(change_url(letter), FORM)

    assert engine.types.all() == {}


@pytest.mark.parametrize(
    ("field", "value"), [("pool", "no spaces"), ("priority", "101"), ("max_retries", "-1"), ("timeout", "0")]
)
def test_impossible_overrides_are_refused_beside_their_field(
    admin_client: Client, letter: JobType, field: str, value: str
) -> None:
    response = admin_client.post(change_url(letter), FORM | {field: value})

    assert response.context["adminform"].form.errors.keys() == {field}


def test_a_pool_that_nobody_knows_is_taken_and_pointed_out(admin_client: Client, letter: JobType) -> None:
    Pool.objects.create(name="slow")

    mistyped = admin_client.post(change_url(letter), FORM | {"pool": "slwo"}, follow=True).content.decode()
    known = admin_client.post(change_url(letter), FORM | {"pool": "slow"}, follow=True).content.decode()

    assert "No pool &#x27;slwo&#x27; was known so far" in mistyped
    assert "was known so far" not in known


def test_what_the_code_declares_cannot_be_edited(admin_client: Client, letter: JobType) -> None:
    admin_client.post(change_url(letter), FORM | {"name": "renamed", "function": "evil", "registered": ""})

    letter.refresh_from_db()
    assert (letter.name, letter.function, letter.registered) == ("letter.print", "post.jobs.letter", True)
    assert admin_client.get(f"{LIST}add/").status_code == 403


def test_types_are_disabled_and_enabled_by_action(
    admin_client: Client,
    engine: Engine,
    letter: JobType,
    commit: Commit,
) -> None:
    other = JobType.objects.create(name="letter.send")

    with commit():
        assert "Disabled 2 job types:" in act(admin_client, "disable", letter, other)
    assert engine.types.disabled() == {"letter.print", "letter.send"}

    with commit():
        assert "Enabled 1 job type:" in act(admin_client, "enable", letter)
    assert engine.types.all().keys() == {"letter.send"}


def test_overrides_are_dropped_by_action(
    admin_client: Client,
    engine: Engine,
    letter: JobType,
    commit: Commit,
) -> None:
    JobType.objects.filter(pk=letter.pk).update(priority=9, pool="slow", enabled=False)

    with commit():
        act(admin_client, "use_declared", letter)

    assert engine.types.get("letter.print") == TypeOverrides(enabled=False)


def test_an_action_leaves_a_line_in_the_history(admin_client: Client, letter: JobType) -> None:
    act(admin_client, "disable", letter)

    history = admin_client.get(reverse("admin:jobs_jobtype_history", args=[letter.pk])).content.decode()
    assert "Changed Enabled" in history


def test_nothing_changes_by_get(admin_client: Client, letter: JobType) -> None:
    admin_client.get(LIST, {"action": "disable", "_selected_action": letter.pk})

    letter.refresh_from_db()
    assert letter.enabled


def test_who_may_only_look_cannot_act(client: Client, letter: JobType) -> None:
    user = User.objects.create_user("ada", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_jobtype"))
    client.force_login(user)

    html = act(client, "disable", letter)

    letter.refresh_from_db()
    assert letter.enabled
    assert 'value="disable"' not in html
    assert client.post(change_url(letter), FORM).status_code == 403


def test_a_type_that_the_code_has_cannot_be_deleted_and_one_that_it_lost_can(
    admin_client: Client,
    engine: Engine,
    letter: JobType,
    commit: Commit,
) -> None:
    engine.types.set("letter.print", {"enabled": False})
    url = reverse("admin:jobs_jobtype_delete", args=[letter.pk])
    refused = admin_client.post(url, {"post": "yes"})
    JobType.objects.update(registered=False)

    with commit():
        admin_client.post(url, {"post": "yes"})

    assert refused.status_code == 403
    assert not JobType.objects.filter(name="letter.print").exists()
    assert engine.types.all() == {}
