"""One place where the server's troubles become ours: what is tried again, for how long, and what is said at the end."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from redis._parsers.base import BaseParser
from redis.exceptions import RedisClusterException
from redis.sentinel import MasterNotFoundError

from jobs.core.job import Route
from jobs.exceptions import (
    JobNotFound,
    LeaseLost,
    OptionInvalid,
    OutcomeUnknown,
    SchedulerError,
    StoreRefused,
    StoreUnavailable,
    WrongState,
)
from jobs.store import connection, embedded
from jobs.store.connection import Store
from jobs.store.keys import HolderKeys, partition_keys
from tests.support.valkey import ValkeyServer, free_port
from tests.support.wait import eventually, soon

QUICK = 0.3
"""Patience of stores whose server stays away, seconds."""


def answer(text: str) -> Exception:
    """What redis-py makes of an error that a server answers."""
    error: Exception = BaseParser.parse_error(text)  # type: ignore[no-untyped-call]
    return error


@pytest.fixture
def make_store(namespace: str) -> Iterator[Callable[..., Store]]:
    made: list[Store] = []

    def make(url: str, patience: float = QUICK) -> Store:
        made.append(Store(url, namespace, patience=patience))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


# What a server refuses ----------------------------------------------------------------------------------------------


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


# Real servers -------------------------------------------------------------------------------------------------------


def test_a_server_that_is_not_there_is_said_so_within_its_patience(make_store: Callable[..., Store]) -> None:
    store = make_store(f"redis://127.0.0.1:{free_port()}/0")
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match="refused") as refused:
        store.ping()

    assert time.monotonic() - began < soon(QUICK + 1)
    assert "doctor" in refused.value.fix


def test_a_server_that_never_answers_is_given_up(
    make_store: Callable[..., Store], deaf_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SOCKET_SECONDS", 0.3)

    store = make_store(f"redis://127.0.0.1:{deaf_port}/0")

    with pytest.raises(OutcomeUnknown):
        take(store, "a")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        store.ping()  # a read has no outcome that could be unknown
    with pytest.raises(StoreUnavailable, match="does not answer"):
        store.run("job_read", partition_keys("n", Route("p", 1, 0)), ["a"])


def test_all_tries_together_end_in_time_for_a_command() -> None:
    assert connection.PATIENCE_SECONDS + connection.SOCKET_SECONDS < 15


def test_within_a_budget_a_call_gives_up_sooner(make_store: Callable[..., Store], deaf_port: int) -> None:
    store = make_store(f"redis://127.0.0.1:{deaf_port}/0", patience=60)
    began = time.monotonic()

    with store.budget(0.3), pytest.raises(SchedulerError):
        store.ping()

    assert time.monotonic() - began < soon(3)


def test_a_budget_is_its_threads_alone_and_ends_with_its_block(store: Store) -> None:
    seen: list[object] = []

    def client_of_a_call() -> None:
        seen.append(store.call(lambda client: client))

    with store.budget(1.0):
        client_of_a_call()
        with store.budget(2.0):
            client_of_a_call()
        other = threading.Thread(target=client_of_a_call)
        other.start()
        other.join()
    client_of_a_call()

    assert seen[0] is not store.client
    assert seen[1] is not seen[0]
    assert seen[2] is seen[3] is store.client


def test_a_restart_of_the_server_is_waited_for(private_valkey: ValkeyServer, make_store: Callable[..., Store]) -> None:
    store = make_store(private_valkey.url, patience=60)
    take(store, "a")
    private_valkey.kill()
    with ThreadPoolExecutor(1) as threads:
        taken = threads.submit(take, store, "b")
        time.sleep(0.3)
        private_valkey.start()

        assert taken.result(60) == [b"0", b"a"]


def take(store: Store, value: str) -> Any:
    return store.run("holder_take", HolderKeys(store.namespace, "ids", "n"), name="n", value=value, expected="")


def test_scripts_that_the_server_forgot_are_sent_again(store: Store) -> None:
    for value in ("a", "b", "c"):
        store.client.script_flush()
        assert take(store, value)[1] == b"a"


def test_a_server_that_is_busy_with_a_script_is_waited_for(
    make_valkey: Callable[..., ValkeyServer], make_store: Callable[..., Store]
) -> None:
    server = make_valkey(busy_reply_threshold="50")
    store = make_store(server.url, patience=10)
    store.ping()
    script = "local t = redis.call('TIME')[1] while redis.call('TIME')[1] - t < 2 do end return 1"

    def hog() -> None:
        with server.client() as client:
            client.eval(script, 0)

    thread = threading.Thread(target=hog)
    thread.start()
    eventually(lambda: server_is_busy(server))

    assert take(store, "a") == [b"1", b"a"]
    thread.join()


def server_is_busy(server: ValkeyServer) -> bool:
    with server.client() as client:
        try:
            client.ping()
        except redis.ResponseError as error:
            return str(error).startswith("BUSY")
    return False


def test_a_server_without_memory_refuses_and_says_why(
    make_valkey: Callable[..., ValkeyServer], make_store: Callable[..., Store]
) -> None:
    server = make_valkey(maxmemory="1", appendonly="no")

    with pytest.raises(StoreUnavailable, match="out of memory"):
        take(make_store(server.url), "a")


@pytest.mark.parametrize("credentials", ["", ":wrong@", "nobody:wrong@"])
def test_a_wrong_password_is_said_so_at_once(
    make_valkey: Callable[..., ValkeyServer], make_store: Callable[..., Store], credentials: str
) -> None:
    port = free_port()
    make_valkey(port=port).client().config_set("requirepass", "right")
    began = time.monotonic()

    with pytest.raises(StoreUnavailable, match="password"):
        make_store(f"redis://{credentials}127.0.0.1:{port}/0", patience=30).ping()

    assert time.monotonic() - began < soon(10)
    make_store(f"redis://:right@127.0.0.1:{port}/0").ping()


def test_a_database_that_is_not_there_is_said_so_at_once(
    make_valkey: Callable[..., ValkeyServer], make_store: Callable[..., Store]
) -> None:
    port = free_port()
    make_valkey(port=port)

    with pytest.raises(StoreUnavailable, match="DB index"):
        make_store(f"redis://127.0.0.1:{port}/99", patience=30).ping()


def test_text_that_is_no_unicode_is_refused(store: Store) -> None:
    with pytest.raises(OptionInvalid, match="surrogates"):
        take(store, "\ud800")


def test_each_thread_waits_on_a_connection_of_its_own(store: Store, namespace: str) -> None:
    keys = [f"{namespace}:{{p.1.{number}}}:wake" for number in range(2)]
    found: dict[int, str | None] = {}

    def wait(number: int) -> None:
        found[number] = store.wait_for_token([keys[number]], 5)

    threads = [threading.Thread(target=wait, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for key in keys:
        store.client.rpush(key, "1")
    for thread in threads:
        thread.join()

    assert found == {0: keys[0], 1: keys[1]}


def test_a_wait_on_a_server_that_is_gone_says_so_and_the_next_one_connects_again(
    private_valkey: ValkeyServer, make_store: Callable[..., Store]
) -> None:
    store = make_store(private_valkey.url)
    assert store.wait_for_token(["x:wake"], 0.01) is None
    private_valkey.kill()

    with pytest.raises(StoreUnavailable):
        store.wait_for_token(["x:wake"], 1)

    private_valkey.start()
    private_valkey.client().rpush("x:wake", "1")
    assert store.wait_for_token(["x:wake"], 1) == "x:wake"


def test_a_forked_child_has_connections_of_its_own(store: Store) -> None:
    mine = store.call(lambda client: client.client_id())

    child = os.fork()
    if child == 0:
        try:
            theirs = store.call(lambda client: client.client_id())
            os._exit(0 if theirs != mine else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert store.call(lambda client: client.client_id()) == mine


def test_a_closed_store_opens_again_when_it_is_used(store: Store) -> None:
    store.ping()
    store.close()
    store.close()

    store.ping()


def test_the_server_can_be_described(store: Store) -> None:
    facts = store.describe()

    assert facts["url"] == store.url
    assert "redis_version" in facts["info"]
    assert facts["time_ms"] > 1_700_000_000_000
    assert "maxmemory-policy" in facts["config"]


def test_a_hundred_threads_share_a_store(store: Store) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            assert take(store, f"v{number}")[1].startswith(b"v")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(120)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []


def test_an_embedded_server_that_died_is_started_again_by_the_next_call(
    make_store: Callable[..., Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_valkey: ValkeyServer
) -> None:
    ensured: list[tuple[str, Path]] = []

    def ensure(url: str, var_dir: Path) -> str:
        ensured.append((url, var_dir))
        if private_valkey.process is None:
            private_valkey.start()
        return private_valkey.url

    monkeypatch.setattr(embedded, "ensure", ensure)
    store = Store("embedded:", "n", var_dir=tmp_path)
    store.ping()
    private_valkey.kill()

    store.ping()

    assert ensured == [("embedded:", tmp_path)] * 2
    store.close()
