"""What is made of answers that refuse and of connections that break: what is tried again, what is said at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import redis
from redis._parsers.base import BaseParser
from redis.exceptions import RedisClusterException
from redis.sentinel import MasterNotFoundError

from jobs.exceptions import (
    JobNotFound,
    LeaseLost,
    OutcomeUnknown,
    SchedulerError,
    StoreRefused,
    StoreUnavailable,
    WrongState,
)
from jobs.store.connection import Store


def answer(text: str) -> Exception:
    """What redis-py makes of an error that a server answers."""
    error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call]
    return error


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        ("JOB_NOT_FOUND no such job", JobNotFound, "No such job."),
        ("WRONG_STATE leased", WrongState, "leased"),
        ("LEASE_LOST the lease ended", LeaseLost, "The lease ended."),
        ("OOM command not allowed when used memory > 'maxmemory'.", StoreUnavailable, "out of memory"),
        ("MISCONF Errors writing to the AOF file: No space left on device", StoreUnavailable, "write to its disk"),
        ("NOPERM User x has no permissions to run the 'hset' command", StoreUnavailable, "lacks a permission"),
        ("NOAUTH Authentication required.", StoreUnavailable, "wants a password"),
        ("WRONGPASS invalid username-password pair", StoreUnavailable, "refused user name or password"),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", StoreRefused, "refused"),
        ("CROSSSLOT Keys in request don't hash to the same slot", StoreRefused, "same slot"),
        ("ERR unknown command", StoreRefused, "unknown command"),
    ],
)
def test_an_answer_that_refuses_is_told_at_once_and_in_our_words(
    store: Store, reply: str, error: type[SchedulerError], words: str
) -> None:
    calls = []

    def send(client: object) -> None:
        calls.append(client)
        raise answer(reply)

    with pytest.raises(error, match=words):
        store.call(send)

    assert len(calls) == 1


@pytest.mark.parametrize(
    "reply",
    [
        "LOADING Valkey is loading the dataset in memory",
        "READONLY You can't write against a read only replica.",
        "MOVED 3999 127.0.0.1:6381",
        "ASK 3999 127.0.0.1:6381",
        "TRYAGAIN Multiple keys request during rehashing of slot",
        "CLUSTERDOWN The cluster is down",
        "MASTERDOWN Link with MASTER is down",
        "BUSY Valkey is busy running a script.",
        "NOREPLICAS Not enough good replicas to write.",
        "UNBLOCKED force unblock from blocking operation",
        "ERR max number of clients reached",
    ],
)
@pytest.mark.parametrize("resend", [True, False])
def test_an_answer_that_says_not_now_is_asked_again_whatever_was_sent(store: Store, reply: str, resend: bool) -> None:
    errors = [answer(reply)] * 2

    def send(client: object) -> str:
        if errors:
            raise errors.pop()
        return "done"

    assert store.call(send, resend=resend) == "done"


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("Error 111 connecting to 127.0.0.1:6379. Connection refused."),
        redis.ConnectionError("Error 2 connecting to unix:/x. No such file or directory."),
        redis.ConnectionError("Error -3 connecting to x:6379. Temporary failure in name resolution."),
        redis.TimeoutError("Timeout connecting to server"),
        redis.exceptions.MaxConnectionsError("Too many connections"),
        MasterNotFoundError("No master found for 'main'"),
        RedisClusterException("Redis Cluster cannot be connected."),
        answer("LOADING Valkey is loading the dataset in memory"),
    ],
)
def test_where_nothing_was_sent_it_says_that_nothing_was_changed(
    make_store: Callable[..., Store], error: Exception, valkey_url: str
) -> None:
    def send(client: object) -> None:
        raise error

    for resend in (True, False):
        with pytest.raises(StoreUnavailable) as refused:
            make_store(valkey_url).call(send, resend=resend)
        assert "SCHEDULER_REDIS_URL" in refused.value.fix


@pytest.mark.parametrize(
    "error",
    [
        redis.TimeoutError("Timeout reading from socket"),
        redis.ConnectionError("Connection closed by server."),
        redis.ConnectionError("Error 104 while writing to socket. Connection reset by peer."),
    ],
)
def test_where_something_was_sent_it_says_that_the_outcome_is_unknown(
    make_store: Callable[..., Store], error: Exception, valkey_url: str
) -> None:
    calls = []

    def send(client: object) -> None:
        calls.append(client)
        raise error

    with pytest.raises(OutcomeUnknown, match="may or may not"):
        make_store(valkey_url, patience=5).call(send, resend=False)
    assert len(calls) == 1

    with pytest.raises(OutcomeUnknown):
        make_store(valkey_url).call(send)
    assert len(calls) > 2


def test_an_outcome_that_was_unknown_once_stays_unknown(make_store: Callable[..., Store], valkey_url: str) -> None:
    """The first try may have been carried out; that the later ones were refused proves nothing."""
    errors = [redis.TimeoutError("Timeout reading from socket")]

    def send(client: object) -> None:
        raise errors.pop() if errors else redis.ConnectionError("Error 111 connecting to x. Connection refused.")

    with pytest.raises(OutcomeUnknown):
        make_store(valkey_url).call(send)
