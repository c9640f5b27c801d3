"""The proxy does to a request exactly what it says, and nothing in clear weather."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry

from tests.faults.proxy import Proxy, Weather, whole_requests
from tests.faults.server import fault_server


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = fault_server(tmp_path_factory.mktemp("server"))
    yield server.socket
    server.kill()


@pytest.fixture
def direct(socket: str) -> Iterator[redis.Redis]:
    """A client that does not go through the proxy."""
    with redis.Redis.from_url(f"unix://{socket}") as client:
        client.flushall()
        yield client


@pytest.fixture
def proxy(socket: str, direct: redis.Redis, tmp_path: Path) -> Iterator[Proxy]:
    proxy = Proxy(socket, tmp_path / "proxy.sock")
    proxy.start()
    yield proxy
    proxy.stop()


@pytest.fixture
def client(proxy: Proxy) -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(proxy.url, retry=Retry(NoBackoff(), 0), socket_timeout=2)
    yield client
    client.close()


def test_clear_weather_passes_everything(client: redis.Redis) -> None:
    client.set("key", b"x" * 200_000)
    assert client.get("key") == b"x" * 200_000


def test_a_lost_reply_means_that_it_was_done(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    client.ping()  # connected, so the next request is the one that matters
    proxy.weather = Weather(lose_reply=1.0)
    with pytest.raises(RedisConnectionError):
        client.incr("count")
    assert direct.get("count") == b"1"
    assert proxy.taken["lose reply"] >= 1


def test_a_lost_request_means_that_it_was_not_done(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    client.ping()
    proxy.weather = Weather(lose_request=1.0)
    with pytest.raises(RedisConnectionError):
        client.incr("count")
    assert direct.get("count") is None


def test_a_repeated_request_is_done_twice(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    client.ping()
    proxy.weather = Weather(repeat=1.0)
    client.incr("count")
    assert direct.get("count") == b"2"


def test_a_cut_reply_ends_the_connection(proxy: Proxy, client: redis.Redis, direct: redis.Redis) -> None:
    direct.set("key", b"x" * 1000)
    client.ping()
    proxy.weather = Weather(cut_reply=1.0)
    with pytest.raises(RedisConnectionError):
        client.get("key")


def test_whole_requests_end_where_the_protocol_says() -> None:
    one = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n"
    assert whole_requests(one) == len(one)
    assert whole_requests(one + one[:-3]) == len(one)
    assert whole_requests(one[:5]) == 0
