"""Connections in threads that run jobs, on a real database file."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, close_old_connections, connections, transaction

from jobs.worker import database

pytestmark = pytest.mark.django_db(transaction=True)


def in_slot_thread(action: Callable[[], Any]) -> Any:
    """What ``action`` answers in a thread that looks after its connections as a slot does."""
    answers: list[Any] = []

    def run() -> None:
        database.adopt_thread()
        try:
            answers.append(action())
        finally:
            database.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    (answer,) = answers
    return answer


def query() -> Any:
    """Uses the database; the driver's connection that it went through."""
    with connections["default"].cursor() as cursor:
        cursor.execute("SELECT 1")
    return connections["default"].connection


@pytest.fixture
def max_age() -> Iterator[Callable[[int | None], None]]:
    before = connections["default"].settings_dict["CONN_MAX_AGE"]

    def set_age(seconds: int | None) -> None:
        connections.settings["default"]["CONN_MAX_AGE"] = seconds

    yield set_age
    set_age(before)


def close_stale_without_django() -> bool:
    """Whether it needs nothing of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "connections", None)
        database.close_stale()
    return True


def test_a_thread_does_not_inherit_what_an_ended_one_of_its_identity_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "get_ident", lambda: 7)
    database._in_use.add(7)
    assert in_slot_thread(close_stale_without_django)


def test_a_thread_that_never_used_the_database_asks_django_for_nothing() -> None:
    assert in_slot_thread(close_stale_without_django)


def test_without_a_max_age_nothing_stays_open_after_a_job(max_age: Callable[[int | None], None]) -> None:
    max_age(0)

    def job() -> Any:
        query()
        database.close_stale()
        return connections["default"].connection

    assert in_slot_thread(job) is None


def test_a_connection_within_its_age_serves_the_next_job_and_an_idle_slot_knows_how_long(
    max_age: Callable[[int | None], None],
) -> None:
    max_age(60)

    def jobs() -> tuple[bool, float | None]:
        first = query()
        database.close_stale()
        return query() is first, database.seconds_until_stale()

    same, seconds = in_slot_thread(jobs)
    assert same
    assert seconds is not None
    assert 50 < seconds <= 60


def test_a_job_that_leaves_a_transaction_open_does_not_hand_it_to_the_next(
    max_age: Callable[[int | None], None],
) -> None:
    max_age(None)

    def jobs() -> bool:
        first = query()
        connections["default"].set_autocommit(False)
        database.close_stale()
        return query() is not first and connections["default"].get_autocommit()

    assert in_slot_thread(jobs)


def test_a_job_that_leaves_an_atomic_block_does_not_spoil_the_slot_for_the_next(
    max_age: Callable[[int | None], None], caplog: pytest.LogCaptureFixture
) -> None:
    max_age(None)

    def jobs() -> tuple[bool, bool]:
        transaction.atomic().__enter__()
        first = query()
        database.close_stale()
        return query() is not first, connections["default"].in_atomic_block

    assert in_slot_thread(jobs) == (True, False)
    assert caplog.messages == ["a job has left a transaction open on the database default: it is rolled back"]


def test_a_driver_that_fails_to_close_costs_no_slot_its_thread(
    max_age: Callable[[int | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    max_age(0)

    def jobs() -> bool:
        first = query()
        monkeypatch.setattr(connections["default"], "close", fail)
        database.close_stale()
        is_new = query() is not first
        first.close()
        return is_new

    assert in_slot_thread(jobs)


def fail() -> None:
    raise OperationalError("the server has gone away")


def test_after_an_interruption_nothing_that_was_open_is_used_again(max_age: Callable[[int | None], None]) -> None:
    max_age(None)

    def jobs() -> tuple[bool, bool]:
        first = query()
        first.execute("BEGIN")  # it was interrupted before Django knew that this had succeeded
        database.drop_all()
        return query() is not first, connections["default"].connection.in_transaction

    assert in_slot_thread(jobs) == (True, False)


def test_what_async_handlers_opened_is_closed_in_the_thread_that_opened_it(
    max_age: Callable[[int | None], None],
) -> None:
    max_age(0)

    async def attempt() -> tuple[bool, bool]:
        opened = await sync_to_async(query)() is not None
        await database.close_stale_of_async_handlers()
        left = await sync_to_async(lambda: connections["default"].connection)()
        await sync_to_async(connections.close_all)()
        return opened, left is None

    assert asyncio.run(attempt()) == (True, True)
    close_old_connections()
