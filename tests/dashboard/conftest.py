"""People with each set of permissions, a shop full of jobs, and clients that are logged in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import redis
from django.contrib.auth.models import Permission, User
from django.core.cache import cache
from django.test import Client

from dashboard import reads
from dashboard.api import pace
from jobs import api
from jobs.engine import get_engine
from tests.dashboard.asking import Program
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

ROLES = {
    "stranger": (),
    "viewer": ("view_dashboard",),
    "maker": ("view_dashboard", "enqueue"),
    "operator": ("view_dashboard", "operate"),
    "administrator": ("view_dashboard", "operate", "administer"),
    "owner": ("view_dashboard", "enqueue", "operate", "administer"),
}

Login = Callable[[str], Client]
Count = Callable[[Callable[[], Any]], int]


@pytest.fixture(autouse=True)
def _nobody_has_asked_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is counted by the minute and the hour is counted of this test alone, and of one minute."""
    cache.clear()
    monkeypatch.setattr(pace, "now", lambda: 1_000_000_060.0)


@pytest.fixture(autouse=True)
def _the_server_of_the_tests_is_none_to_be_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps nothing on disk, which is right for tests."""
    monkeypatch.setattr("dashboard.reads.whole.flaws", tuple)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def user(db: None) -> Callable[[str], User]:
    """``user("viewer")``: somebody with just the permissions of that role."""

    def make(role: str) -> User:
        person = User.objects.create_user(username=role, password=role)
        wanted = Permission.objects.filter(content_type__app_label="jobs", codename__in=ROLES[role])
        assert len(wanted) == len(ROLES[role])
        person.user_permissions.set(wanted)
        return person

    return make


@pytest.fixture
def login(user: Callable[[str], User]) -> Login:
    """``login("viewer")``: a browser of that person. CSRF is enforced as in life."""

    def make(role: str) -> Client:
        client = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
        if role != "anonymous":
            client.force_login(User.objects.filter(username=role).first() or user(role))
        return client

    return make


@pytest.fixture
def viewer(login: Login) -> Client:
    return login("viewer")


@pytest.fixture
def operator(login: Login) -> Client:
    return login("operator")


@pytest.fixture
def administrator(login: Login) -> Client:
    return login("administrator")


@pytest.fixture
def program(user: Callable[[str], User]) -> Callable[..., Program]:
    """``program("viewer", "enqueue")``: one with a token of that person, within these scopes."""

    def make(role: str, *scopes: str) -> Program:
        person = User.objects.filter(username=role).first() or user(role)
        return Program(api.tokens.create(person.get_username(), scopes=scopes)[0])

    return make


@pytest.fixture
def root(db: None) -> Program:
    """One that may do everything."""
    User.objects.create_superuser("root")
    return Program(api.tokens.create("root")[0])


@pytest.fixture
def runs(shop: Shop) -> Runs:
    return Runs(shop.engine)


@pytest.fixture
def round_trips(shop: Shop) -> Count:
    """How often the engine's client went to the server during a call; a pipeline counts once."""
    counted = 0
    send = redis.connection.AbstractConnection.send_packed_command

    def counting(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal counted
        counted += 1
        return send(self, command, *args, **kwargs)

    def count(call: Callable[[], Any]) -> int:
        nonlocal counted
        reads.forget()
        get_engine().topology.forget()
        with pytest.MonkeyPatch.context() as patch:
            counted = 0
            patch.setattr(redis.connection.AbstractConnection, "send_packed_command", counting)
            call()
        return counted

    return count
