"""Connections to the database in the threads of services."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from jobs.services import database

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def no_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are closed as soon as they are used, as Django has it where nothing else is said."""
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)


def in_a_thread(action: Callable[[], Any]) -> Any:
    def run() -> Any:
        try:
            return action()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(run).result()


def look(*, kept: float) -> Any:
    """A service looks into the database; what stays open then."""
    with database.fresh_connections(kept=kept), connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")
    return connections["default"].connection


def test_a_service_that_comes_seldom_leaves_none_open() -> None:
    assert in_a_thread(lambda: look(kept=0.0)) is None


def test_one_that_is_back_in_a_moment_finds_the_same_until_its_time_is_over() -> None:
    def looks() -> None:
        first = look(kept=60.0)
        assert first is not None
        assert look(kept=60.0) is first
        connections["default"].close_at -= 61.0
        assert look(kept=60.0) is not first

    in_a_thread(looks)


def test_one_that_broke_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def looks() -> None:
        look(kept=60.0)
        connections["default"].errors_occurred = True
        monkeypatch.setattr(type(connections["default"]), "is_usable", lambda _: False)
        with database.fresh_connections(kept=60.0):
            assert connections["default"].connection is None

    in_a_thread(looks)
