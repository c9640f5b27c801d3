"""The forms that a server's address may take, and the client for each.

Time-outs and retries are always set here: redis-py 8 would otherwise give every connection 5 seconds to read and
re-send a command ten times, which for a blocking pop loses what the first one was given.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.cluster import ClusterNode, RedisCluster
from redis.driver_info import DriverInfo
from redis.retry import Retry
from redis.sentinel import Sentinel

from jobs.exceptions import OptionInvalid
from jobs.store.client import Client, Pool

CONNECT_SECONDS = 3.0

FIXED = (
    *("socket_timeout", "socket_connect_timeout", "retry", "retry_on_timeout", "retry_on_error"),
    *("protocol", "legacy_responses", "decode_responses", "encoding", "encoding_errors"),
)
"""Parameters that no URL may set: the store decides how long it waits and what it sends again, and reads bytes."""

SENTINELS_OWN = {"sentinel_username": "username", "sentinel_password": "password"}
"""Parameters that are for the Sentinels, and what they are called there."""

READ_BYTES = 256 * 1024
"""Read from a connection at once: what a thousand small jobs bring. With each further read a thread would give the
interpreter's lock away, and wait for it anew behind the handlers that run."""

DRIVER = DriverInfo()
"""What a connection says of the client. Made once: the client would read its version from its package's files for every
connection, which takes longer than to connect."""


def connect(url: str, seconds: float) -> redis.Redis:
    """A client for any URL of the CONTRACT. ``seconds``: how long one answer may take. OptionInvalid for other URLs."""
    options: dict[str, Any] = {
        "socket_timeout": seconds,
        "socket_connect_timeout": min(CONNECT_SECONDS, seconds),
        "socket_keepalive": True,
        "socket_read_size": READ_BYTES,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
    }
    scheme = urlsplit(url).scheme
    if scheme in ("redis", "rediss", "unix"):
        return _connect_one(url, scheme, options)
    if scheme == "redis+sentinel":
        return _connect_sentinel(url, options)
    if scheme == "redis+cluster":
        return _connect_cluster(url, options)
    raise OptionInvalid(
        f"SCHEDULER_REDIS_URL has the unknown scheme {scheme!r}.",
        fix="Use redis://, rediss://, unix://, redis+sentinel://, redis+cluster://, embedded: or memory:.",
    )


def _connect_one(url: str, scheme: str, options: dict[str, Any]) -> redis.Redis:
    _refuse_parameters(name for name in _parameters(url) if name in FIXED)
    options["driver_info"] = DRIVER
    if scheme == "unix":
        del options["socket_keepalive"]
    try:
        pool = _untyped(Pool).from_url(url, **options)
        pool.connection_class(**pool.connection_kwargs)  # opens nothing, but refuses parameters that it does not know
    except (ValueError, TypeError) as error:
        raise OptionInvalid(f"SCHEDULER_REDIS_URL cannot be used: {error}.") from error
    client: redis.Redis = _untyped(Client).from_pool(pool)
    return client


def _hosts(url: str, default_port: int) -> tuple[list[tuple[str, int]], dict[str, Any]]:
    """The hosts of a URL with several, and the user name and password in front of them."""
    netloc = urlsplit(url).netloc
    credentials, _, hosts = netloc.rpartition("@")
    options: dict[str, Any] = {}
    if credentials:
        username, _, password = credentials.partition(":")
        options["username"] = unquote(username) or None
        options["password"] = unquote(password) or None
    pairs = []
    for host in hosts.split(","):
        name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
        if not name or (port and not port.isdigit()):
            raise OptionInvalid(f"SCHEDULER_REDIS_URL has no valid host:port in {host!r}.")
        pairs.append((name.strip("[]"), int(port or default_port)))
    return pairs, options


def _connect_sentinel(url: str, options: dict[str, Any]) -> redis.Redis:
    """``redis+sentinel://h1:p1,h2:p2/SERVICE/0``; the user and password are the data servers'."""
    hosts, credentials = _hosts(url, 26379)
    service, _, database = urlsplit(url).path.strip("/").partition("/")
    if not service or (database and not database.isdigit()):
        raise OptionInvalid(
            "SCHEDULER_REDIS_URL names no Sentinel service.", fix="Write redis+sentinel://host:26379/SERVICE/0."
        )
    query = _parameters(url)
    _refuse_parameters(name for name in query if name not in SENTINELS_OWN)
    sentinel_options = options | {SENTINELS_OWN[name]: value for name, value in query.items()}
    sentinel = _untyped(Sentinel)(hosts, sentinel_kwargs=sentinel_options)
    client: redis.Redis = sentinel.master_for(service, db=int(database or 0), **options, **credentials)
    return client


def _connect_cluster(url: str, options: dict[str, Any]) -> redis.Redis:
    _refuse_parameters(_parameters(url))
    hosts, credentials = _hosts(url, 6379)
    nodes = [_untyped(ClusterNode)(host, port) for host, port in hosts]
    # RedisCluster offers the commands of Redis without being one.
    client: redis.Redis = _untyped(RedisCluster)(startup_nodes=nodes, **options, **credentials)
    return client


def _parameters(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query, keep_blank_values=True).items()}


def _refuse_parameters(names: Iterable[str]) -> None:
    for name in names:
        raise OptionInvalid(f"SCHEDULER_REDIS_URL cannot have the parameter {name!r}.", fix="Leave it out.")


def _untyped(maker: Any) -> Any:
    """redis-py leaves these without types."""
    return maker


def shown_url(url: str) -> str:
    """The URL without passwords and parameters, for messages."""
    scheme, separator, rest = url.partition("?")[0].partition("://")
    credentials, at, place = rest.rpartition("@")
    if ":" not in credentials:  # no password; an "@" may be part of a path
        return scheme + separator + rest
    return f"{scheme}{separator}{credentials.partition(':')[0]}:***{at}{place}"
