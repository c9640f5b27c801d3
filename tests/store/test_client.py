"""The shorter way to the server keeps what redis-py's own way promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest
import redis
from redis.exceptions import DataError, ResponseError

from jobs.store.client import Client
from jobs.store.connection import Store
from jobs.store.urls import connect


def _interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def _in_flight(client: redis.Redis, commands: Iterable[Sequence[Any]]) -> Iterator[Any]:
    assert isinstance(client, Client)
    return client.in_flight(commands)


@pytest.fixture
def client(store: Store) -> Iterator[redis.Redis]:
    client = connect(store.url, 5.0)
    yield client
    client.close()


def test_commands_share_one_connection(client: redis.Redis) -> None:
    first = client.client_id()

    with client.pipeline(transaction=False) as pipeline:
        pipeline.client_id()
        assert pipeline.execute() == [first]
    assert client.client_id() == first


def test_a_refusal_is_an_answer_and_costs_no_connection(client: redis.Redis) -> None:
    before = client.client_id()

    with pytest.raises(ResponseError):
        client.execute_command("NO SUCH COMMAND")

    assert client.client_id() == before


def test_a_connection_that_the_server_has_closed_is_opened_anew(client: redis.Redis, store: Store) -> None:
    store.client.client_kill_filter(_id=client.client_id())

    assert client.ping()


def test_whoever_is_interrupted_leaves_no_answer_for_the_next(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.ping()
    (connection,) = client.connection_pool._rested
    with monkeypatch.context() as patch:
        patch.setattr(connection, "read_response", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.echo("for nobody")

    assert client.echo("for us") == b"for us"


def test_closing_closes_what_rests(client: redis.Redis, store: Store) -> None:
    mine = client.client_id()

    client.close()

    assert str(mine) not in {other["id"] for other in store.client.client_list()}


def test_the_next_command_is_sent_before_the_one_before_it_is_answered(client: redis.Redis) -> None:
    made: list[int] = []

    def commands() -> Iterator[tuple[str, int]]:
        for number in range(4):
            made.append(number)
            yield ("ECHO", number)

    answers = _in_flight(client, commands())

    assert next(answers) == b"0"
    assert made == [0, 1]
    assert list(answers) == [b"1", b"2", b"3"]


def test_whoever_takes_only_some_of_the_answers_leaves_none_behind(client: redis.Redis) -> None:
    next(_in_flight(client, [("ECHO", "taken"), ("ECHO", "left")]))

    assert client.echo("ours") == b"ours"


def test_a_value_that_cannot_be_sent_is_told_and_leaves_nothing_behind(client: redis.Redis) -> None:
    with pytest.raises(DataError, match="must be"):
        client.execute_command("EVALSHA", "0" * 40, 0, None)

    assert client.echo("ours") == b"ours"


def test_bytes_of_any_kind_reach_a_script(client: redis.Redis) -> None:
    sha = client.script_load("return ARGV")
    values = (b"\r\n$1\0", bytearray(b"a"), memoryview(b"b"), "é", 7, 0.5)

    assert client.execute_command("EVALSHA", sha, 0, *values) == [b"\r\n$1\0", b"a", b"b", "é".encode(), b"7", b"0.5"]


def test_a_refusal_ends_all_that_is_in_flight(client: redis.Redis) -> None:
    answers = _in_flight(client, [("ECHO", "1"), ("NO SUCH COMMAND",), ("ECHO", "3")])

    assert next(answers) == b"1"
    with pytest.raises(ResponseError):
        next(answers)
    assert client.echo("ours") == b"ours"
