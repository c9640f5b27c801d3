"""The server's troubles on real servers: how long they are waited for, and what is said at the end."""

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

from jobs.core.job import Route
from jobs.exceptions import (
    OptionInvalid,
    OutcomeUnknown,
    SchedulerError,
    StoreUnavailable,
)
from jobs.store import clients, connection, embedded
from jobs.store.connection import Store
from jobs.store.keys import HolderKeys, partition_keys
from jobs.store.scripts import Call
from tests.store.conftest import QUICK
from tests.support.valkey import ValkeyServer, free_port
from tests.support.wait import eventually, soon


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that takes connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(16)
        yield listener.getsockname()[1]


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
    monkeypatch.setattr(clients, "SOCKET_SECONDS", 0.3)

    store = make_store(f"redis://127.0.0.1:{deaf_port}/0")

    with pytest.raises(OutcomeUnknown):
        take(store, "a")
    with pytest.raises(StoreUnavailable, match="does not answer"):
        store.ping()  # a read has no outcome that could be unknown
    with pytest.raises(StoreUnavailable, match="does not answer"):
        store.run("job_read", partition_keys("n", Route("p", 1, 0)), ["a"])


def test_all_tries_together_end_in_time_for_a_command() -> None:
    assert connection.PATIENCE_SECONDS + clients.SOCKET_SECONDS < 15


def test_within_a_budget_a_call_gives_up_sooner(make_store: Callable[..., Store], deaf_port: int) -> None:
    store = make_store(f"redis://127.0.0.1:{deaf_port}/0", patience=60)
    began = time.monotonic()

    with store.budget(0.3), pytest.raises(SchedulerError):
        store.ping()

    assert time.monotonic() - began < soon(3)


def test_within_a_budget_a_server_that_is_not_there_is_given_up_before_one_that_is_slow(
    make_store: Callable[..., Store], deaf_port: int
) -> None:
    def seconds(port: int) -> float:
        store = make_store(f"redis://127.0.0.1:{port}/0", patience=60)
        began = time.monotonic()
        with store.budget(1.0), pytest.raises(StoreUnavailable):
            store.ping()
        return time.monotonic() - began

    assert seconds(free_port()) < seconds(deaf_port)


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


def test_connections_to_a_server_that_has_become_a_replica_are_left_for_whom_its_name_leads_to_now(
    make_valkey: Callable[..., ValkeyServer], make_store: Callable[..., Store], namespace: str, tmp_path: Path
) -> None:
    old, new = make_valkey(), make_valkey(port=free_port())
    name = tmp_path / "primary.sock"
    name.symlink_to(old.socket)
    store = make_store(f"unix://{name}", patience=5.0)

    def wait(_: int) -> None:
        store.read(lambda client: client.blpop([f"{namespace}:nothing"], 0.2))
        with store.budget(2.0):
            store.read(lambda client: client.blpop([f"{namespace}:nothing"], 0.2))

    with ThreadPoolExecutor(3) as threads:  # a connection each
        list(threads.map(wait, range(3)))
    with old.client() as client:
        client.replicaof("127.0.0.1", str(new.port))
        name.unlink()
        name.symlink_to(new.socket)
        eventually(lambda: client.info("replication")["role"] == "slave")

    store.call(lambda client: client.set(f"{namespace}:x", 1))
    with new.client() as client:
        assert client.get(f"{namespace}:x") == b"1"
        client.set(f"{namespace}:x", 2)
    with old.client() as client:
        client.replicaof("no", "one")
        client.set(f"{namespace}:x", 3)  # who still reads here is found out
    for _ in range(4):
        assert store.read(lambda client: client.get(f"{namespace}:x")) == b"2"
        with store.budget(2.0):
            assert store.read(lambda client: client.get(f"{namespace}:x")) == b"2"


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


def waiting_call(store: Store, route: Route) -> Call:
    """A script that tells what it finds: the clock, when nothing else."""
    return Call(partition_keys(store.namespace, route), {"given_now": "", "limit": 9})


def test_a_script_that_is_sent_with_a_wait_runs_when_the_wait_ends(
    private_valkey: ValkeyServer, make_store: Callable[..., Store]
) -> None:
    """By a token, by its time, by force; and where the server has forgotten it meanwhile."""
    store, client = make_store(private_valkey.url), private_valkey.client()
    call = waiting_call(store, Route("p", 1, 0))
    ends: tuple[Callable[[int], object], ...] = (
        lambda _: client.rpush("x:wake", "1"),
        lambda _: None,
        lambda blocked: client.client_unblock(blocked, error=True),
        lambda _: (client.script_flush(), client.rpush("x:wake", "1")),
    )

    with ThreadPoolExecutor(1) as threads:
        for end in ends:
            waiting = threads.submit(store.wait_and_run, "x:wake", 0.5, "job_promote", call)
            eventually(lambda: [each for each in client.client_list() if "b" in each["flags"]])
            (blocked,) = (int(each["id"]) for each in client.client_list() if "b" in each["flags"])
            end(blocked)
            now, promoted, _ = waiting.result(20)
            assert now > 0
            assert promoted == 0


def test_a_script_that_stands_behind_a_wait_goes_with_whoever_waited(
    private_valkey: ValkeyServer, make_store: Callable[..., Store]
) -> None:
    store, client = make_store(private_valkey.url), private_valkey.client()
    route = Route("p", 1, 0)

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(store.wait_and_run, "x:wake", 20, "job_promote", waiting_call(store, route))
        eventually(lambda: [each for each in client.client_list() if "b" in each["flags"]])
        client.client_kill_filter(_id=next(each["id"] for each in client.client_list() if "b" in each["flags"]))
        with pytest.raises(OutcomeUnknown):
            waiting.result(20)
    client.rpush("x:wake", "1")

    assert client.lrange("x:wake", 0, -1) == [b"1"]
    assert not client.exists(partition_keys(store.namespace, route).clock)


def blocked(client: redis.Redis) -> list[str]:
    """The connections on which somebody waits."""
    return [each["id"] for each in client.client_list() if "b" in each["flags"]]


def test_waits_that_follow_one_another_share_a_connection_from_whichever_thread(
    private_valkey: ValkeyServer, make_store: Callable[..., Store]
) -> None:
    store, client = make_store(private_valkey.url), private_valkey.client()
    seen: set[str] = set()

    for _ in range(3):
        thread = threading.Thread(target=store.wait_for_token, args=(["x:wake"], 20))
        thread.start()
        seen.update(eventually(lambda: blocked(client)))
        client.rpush("x:wake", "1")
        thread.join()

    assert len(seen) == 1


def test_a_store_that_is_closed_leaves_those_alone_who_wait(
    private_valkey: ValkeyServer, make_store: Callable[..., Store]
) -> None:
    store, client = make_store(private_valkey.url), private_valkey.client()

    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(store.wait_for_token, ["x:wake"], 20)
        eventually(lambda: blocked(client))
        store.wait_for_token(["x:other"], 0.01)
        store.close()
        client.rpush("x:wake", "1")

        assert waiting.result(20) == "x:wake"


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
