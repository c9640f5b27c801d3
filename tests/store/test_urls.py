"""The forms that SCHEDULER_REDIS_URL may take."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exceptions import OptionInvalid
from jobs.store import urls
from jobs.store.urls import connect, shown_url


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://h", {"host": "h"}),
        ("redis://h:7000/3", {"host": "h", "port": 7000, "db": 3}),
        ("redis://u:p%40w@h:7000/3", {"username": "u", "password": "p@w"}),
        ("rediss://h:7000", {"host": "h", "port": 7000}),
        ("unix:///tmp/x.sock?db=2", {"path": "/tmp/x.sock", "db": 2}),
        ("unix://:secret@/tmp/x.sock", {"path": "/tmp/x.sock", "password": "secret"}),
    ],
)
def test_one_server(url: str, expected: dict[str, Any]) -> None:
    pool = connect(url, 1.5).connection_pool

    assert {name: pool.connection_kwargs[name] for name in expected} == expected
    assert pool.connection_kwargs["socket_timeout"] == 1.5
    assert pool.connection_kwargs["retry"].get_retries() == 0


def test_a_server_with_tls_is_checked_by_default() -> None:
    made = connect("rediss://h", 1).connection_pool.make_connection()

    assert (made.cert_reqs.name, made.check_hostname) == ("CERT_REQUIRED", True)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("url", "hosts", "service", "options"),
    [
        ("redis+sentinel://a/main", [("a", 26379)], "main", {"db": 0}),
        ("redis+sentinel://a:1,b:2,c/main/4", [("a", 1), ("b", 2), ("c", 26379)], "main", {"db": 4}),
        ("redis+sentinel://u:p%2Cw@a:1,b:2/main", [("a", 1), ("b", 2)], "main", {"username": "u", "password": "p,w"}),
        ("redis+sentinel://[::1]:5/main", [("::1", 5)], "main", {}),
    ],
)
def test_sentinels(url: str, hosts: list[tuple[str, int]], service: str, options: dict[str, Any]) -> None:
    pool: Any = connect(url, 1.5).connection_pool

    found = [sentinel.connection_pool.connection_kwargs for sentinel in pool.sentinel_manager.sentinels]
    assert [(kwargs["host"], kwargs["port"]) for kwargs in found] == hosts
    assert pool.service_name == service
    assert {name: pool.connection_kwargs[name] for name in options} == options
    assert all(kwargs["socket_timeout"] == 1.5 for kwargs in [*found, pool.connection_kwargs])


def test_sentinels_may_have_a_password_of_their_own() -> None:
    pool: Any = connect("redis+sentinel://a:1/main?sentinel_username=s&sentinel_password=q", 1).connection_pool

    [sentinel] = pool.sentinel_manager.sentinels
    assert sentinel.connection_pool.connection_kwargs["username"] == "s"
    assert sentinel.connection_pool.connection_kwargs["password"] == "q"
    assert pool.connection_kwargs.get("password") is None


def test_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(urls, "RedisCluster", lambda **options: asked.update(options))

    connect("redis+cluster://u:p@a:1,b", 1.5)

    assert [(node.host, node.port) for node in asked["startup_nodes"]] == [("a", 1), ("b", 6379)]
    assert (asked["username"], asked["password"], asked["socket_timeout"]) == ("u", "p", 1.5)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://h",
        "redis+sentinel://a",
        "redis+sentinel://a/main/x",
        "redis+sentinel:///main",
        "redis+sentinel://a:x/main",
        "redis+cluster://",
        "redis+cluster://a:1,,b:2",
        "redis://h:port",
        "redis://h/0?no_such_parameter=1",
        "redis://h/0?socket_timeout=soon",
        "redis://h/0?socket_timeout=60",
        "redis://h/0?decode_responses=true",
        "rediss://h/0?protocol=3",
        "unix:///tmp/x.sock?retry_on_timeout=yes",
        "redis+sentinel://a/main?socket_timeout=60",
        "redis+cluster://a:1?ssl_ca_certs=ca.pem",
    ],
)
def test_a_url_that_cannot_be_used_is_refused_by_name(url: str) -> None:
    with pytest.raises(OptionInvalid, match="SCHEDULER_REDIS_URL"):
        connect(url, 1)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://h:1/0", "redis://h:1/0"),
        ("redis://:secret@h:1/0", "redis://:***@h:1/0"),
        ("redis://user:secret@h:1/0", "redis://user:***@h:1/0"),
        ("redis://user:se@cret@h:1/0", "redis://user:***@h:1/0"),
        ("redis://h/0?password=secret", "redis://h/0"),
        ("redis+sentinel://u:secret@a:1,b:2/main/0?sentinel_password=secret", "redis+sentinel://u:***@a:1,b:2/main/0"),
        ("redis+cluster://u:secret@a:1,b:2", "redis+cluster://u:***@a:1,b:2"),
        ("unix://:secret@/tmp/x.sock", "unix://:***@/tmp/x.sock"),
        ("redis://:se/cret@h:1/0", "redis://:***@h:1/0"),
        ("unix:///tmp/a@b.sock?password=secret", "unix:///tmp/a@b.sock"),
        ("redis://user@h:1/0", "redis://user@h:1/0"),
        ("embedded:", "embedded:"),
        ("memory:", "memory:"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    assert "secret" not in shown_url(url)
