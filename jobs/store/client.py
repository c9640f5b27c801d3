"""A client of redis-py with a shorter way to the server.

Around each command redis-py measures, counts, retries and tells its listeners. Nobody listens here, and the store
retries by rules of its own; but a process that has slept pays for every line that it has not run lately, and a job's
start waits for three commands in a row.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import redis
from hiredis import pack_command
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError, RedisError, ResponseError


class Pool(redis.ConnectionPool):
    """Keeps what is released in a list of its own. For redis-py it stays in use: so it is closed with all others."""

    def reset(self) -> None:
        self._rested: list[Any] = []
        super().reset()

    def get_connection(self, command_name: str | None = None, *keys: Any, **options: Any) -> Any:
        """One that can be written to: whatever the server has closed meanwhile is opened anew."""
        if self.pid != os.getpid() or not self._rested:
            return super().get_connection()
        try:
            connection = self._rested.pop()
        except IndexError:  # another thread was faster
            return super().get_connection()
        try:
            if _is_spoilt(connection):
                connection.disconnect()
                connection.connect()
        except BaseException:
            self.release(connection)
            raise
        return connection

    def disconnect(self, inuse_connections: bool = True) -> None:
        super().disconnect(inuse_connections)
        if not inuse_connections:
            while self._rested:
                self._rested.pop().disconnect()

    def release(self, connection: Any) -> None:
        if connection.pid != os.getpid() or connection.should_reconnect():
            super().release(connection)
        else:
            self._rested.append(connection)


class Client(redis.Redis):
    """Sends once, and raises what comes of it."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        pool: Any = self.connection_pool
        connection = pool.get_connection()
        try:
            if args[0] == "EVALSHA":
                send(connection, args)
                return connection.read_response()  # of what a script says redis-py knows nothing
            connection.send_command(*args)
            parse: Any = self.parse_response
            return parse(connection, args[0], **options)
        except ResponseError:
            raise  # an answer like any other
        except BaseException:
            connection.disconnect()  # the answer may still come, and would be taken for that of the next command
            raise
        finally:
            pool.release(connection)

    def in_flight(self, commands: Iterable[Sequence[Any]]) -> Iterator[Any]:
        """The answers to the commands, in order. Each is made and sent before the answer to the one before it is
        awaited: the server has always something to do. What it refuses, or what breaks, ends it for all of them."""
        pool: Any = self.connection_pool
        connection = pool.get_connection()
        is_awaited = False
        try:
            for command in commands:
                send(connection, command)
                if is_awaited:
                    yield connection.read_response()
                is_awaited = True
            if is_awaited:
                yield connection.read_response()
        except BaseException:
            connection.disconnect()
            raise
        finally:
            pool.release(connection)


def wait_and_run(client: Any, wait: Sequence[Any], run: Sequence[Any], *, otherwise: Sequence[Any]) -> Any:
    """The answer to ``run``, which is sent together with ``wait`` and stands behind it at the server; where that does
    not know the script, the answer to ``otherwise``. Not for a cluster."""
    pool = client.connection_pool
    connection = pool.get_connection()
    try:
        connection.send_packed_command(connection.pack_commands([wait, run]))
        _ended_wait(connection)
        try:
            return connection.read_response()
        except NoScriptError:
            connection.send_command(*otherwise)
            return connection.read_response()
    except ResponseError:
        raise  # both answers have been read
    except BaseException:
        connection.disconnect()
        raise
    finally:
        pool.release(connection)


def _ended_wait(connection: Any) -> None:
    """However it ended: what stands behind it is carried out all the same, and its answer has to be read."""
    with suppress(ResponseError):
        connection.read_response()


def close_rested(client: Any) -> None:
    """Closes those connections on which nobody waits."""
    is_cluster = isinstance(client, RedisCluster)
    clients = [node.redis_connection for node in client.get_nodes()] if is_cluster else [client]
    for each in filter(None, clients):
        each.connection_pool.disconnect(inuse_connections=False)


def send(connection: Any, command: Sequence[Any]) -> None:
    """Sends a command of one word. redis-py would look at each argument before hiredis does."""
    try:
        packed = pack_command(tuple(command))
    except TypeError:
        connection.send_command(*command)  # knows more kinds of bytes
    else:
        connection.send_packed_command((packed,), check_health=False)


def _is_spoilt(connection: Any) -> bool:
    """Closed by the server, or with something in it that nobody has waited for."""
    try:
        return bool(connection.can_read())
    except (RedisError, OSError):
        return True
