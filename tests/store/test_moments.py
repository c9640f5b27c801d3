"""Many questions in few round trips: a script over many keys at once, and what is read a single time for a page."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import redis

from jobs.core.job import Route
from jobs.core.states import JobState
from jobs.exceptions import SchedulerError
from jobs.store.clients import BUDGETS_KEPT
from jobs.store.connection import Store
from jobs.store.keys import partition_keys
from jobs.store.scripts import Call


class _Line:
    def __init__(self, line: str) -> None:
        self.line = line


FIRST_TWO = {"after_score": "", "after_id": "", "limit": 2, "descending": ""}


@pytest.fixture
def lines(store: Store, namespace: str) -> list[str]:
    """Three lines with one, two and three members."""
    names = [partition_keys(namespace, Route(f"pool-{number}", 1, 0)).index(JobState.SCHEDULED) for number in (1, 2, 3)]
    for number, name in enumerate(names, start=1):
        store.client.zadd(name, {f"{number}-{place}": place for place in range(number)})
    return names


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was sent to servers, one entry for each trip."""
    sent: list[Any] = []
    send = redis.connection.AbstractConnection.send_packed_command

    def noted(self: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
        sent.append(command)
        return send(self, command, *args, **kwargs)

    monkeypatch.setattr(redis.connection.AbstractConnection, "send_packed_command", noted)
    return sent


def _firsts(store: Store, lines: list[str]) -> list[list[bytes]]:
    replies = store.run_each("line_page", [Call(_Line(line), FIRST_TWO) for line in lines])
    return [reply[::2] for reply in replies]


def test_a_script_runs_for_many_keys_in_one_trip(store: Store, lines: list[str], trips: list[Any]) -> None:
    expected = [[b"1-0"], [b"2-0", b"2-1"], [b"3-0", b"3-1"]]
    assert _firsts(store, lines) == expected
    trips.clear()

    assert _firsts(store, lines) == expected
    assert len(trips) == 1
    assert _firsts(store, []) == []


def test_a_server_that_forgot_the_script_is_told_it_again(store: Store, lines: list[str]) -> None:
    _firsts(store, lines)

    store.client.script_flush()

    assert [len(found) for found in _firsts(store, lines)] == [1, 2, 2]


def test_one_refusal_among_many_calls_is_said_as_of_a_single_one(store: Store, lines: list[str]) -> None:
    store.client.delete(lines[1])
    store.client.set(lines[1], "no line")

    with pytest.raises(SchedulerError) as alone:
        store.run("line_page", _Line(lines[1]), **FIRST_TWO)
    with pytest.raises(SchedulerError) as among:
        _firsts(store, lines)

    assert (type(among.value), str(among.value)) == (type(alone.value), str(alone.value))


def test_within_a_moment_a_thing_is_asked_once_and_by_this_thread_alone(store: Store) -> None:
    asked: list[int] = []

    def ask() -> int:
        asked.append(1)
        return len(asked)

    with store.moment():
        assert [store.once("it", ask), store.once("it", ask)] == [1, 1]
        with store.moment():  # within another: it is the same
            assert store.once("it", ask) == 1
        other: list[int] = []
        thread = threading.Thread(target=lambda: other.append(store.once("it", ask)))
        thread.start()
        thread.join()
        assert other == [2]
        assert store.once("it", ask) == 1
    assert [store.once("it", ask), store.once("it", ask)] == [3, 4]


def test_what_could_not_be_read_is_asked_again_within_the_moment(store: Store) -> None:
    def fails() -> int:
        raise ValueError

    with store.moment():
        with pytest.raises(ValueError):
            store.once("it", fails)
        assert store.once("it", lambda: 7) == 7


def test_each_budget_keeps_its_connection_from_thread_to_thread(store: Store, trips: list[Any]) -> None:
    def ping(seconds: float) -> None:
        with store.budget(seconds):
            store.ping()

    def ask(seconds: float) -> None:
        """As a request does to a server of ASGI."""
        thread = threading.Thread(target=ping, args=[seconds])
        thread.start()
        thread.join()

    for seconds in (1.5, 4.0):
        ask(seconds)
    trips.clear()
    for seconds in (1.5, 4.0, 1.5):
        ask(seconds)
    assert len(trips) == 3  # and none to make a connection

    for number in range(BUDGETS_KEPT):  # they push out the others
        ask(10.0 + number)
    trips.clear()
    ask(1.5)
    assert len(trips) > 1
