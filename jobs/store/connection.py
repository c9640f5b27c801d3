"""Connections to Redis or Valkey: requests that outlast a restart of the server, within bounds."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import redis
from redis.cluster import RedisCluster
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ReadOnlyError

from jobs.exceptions import OptionInvalid, OutcomeUnknown, SchedulerError, StoreUnavailable
from jobs.store import failures
from jobs.store.client import Client, wait_and_run
from jobs.store.clients import LONGEST_WAIT, Clients
from jobs.store.scripts import Call, Script, script
from jobs.store.urls import shown_url

if TYPE_CHECKING:
    from jobs.conf import Settings

T = TypeVar("T")

TURN_SECONDS = 0.1
"""How long a wait stays with one slot of a cluster before it looks at the next."""

PATIENCE_SECONDS = 6.0
"""How long a call keeps trying while the server restarts or fails over. With one answer's time on top it stays below
the 15 seconds in which a command must end."""

NOBODY_SHARE = 0.5
"""So much of a budget is waited where no server listens. Whoever has a budget would sooner know: the whole of it is for
one that is slow."""


class Store:
    """One server (or cluster) under one namespace. Thread-safe; connections are made anew after a fork."""

    def __init__(
        self,
        url: str,
        namespace: str = "mainspring",
        *,
        var_dir: Path = Path("var"),
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.url = url
        self.namespace = namespace
        self.patience = patience
        self._clients = Clients(url, var_dir)
        self._limits = threading.local()

    @classmethod
    def from_settings(cls, settings: Settings, *, patience: float = PATIENCE_SECONDS) -> Store:
        return cls(settings.redis_url, settings.namespace, var_dir=settings.var_dir, patience=patience)

    @property
    def client(self) -> redis.Redis:
        """The redis-py client, for commands that take no longer than a moment."""
        return self._clients.usual

    @contextmanager
    def budget(self, seconds: float) -> Iterator[None]:
        """Within it, this thread's calls give up after about ``seconds``: for pages, which must not hang with the
        server."""
        before = getattr(self._limits, "seconds", None)
        self._limits.seconds = seconds
        try:
            yield
        finally:
            self._limits.seconds = before

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Within it, this thread reads what goes through ``once`` a single time: a page that asks the same thing in six
        places tells of one moment, and asks once. Only for those who change nothing."""
        if getattr(self._limits, "read", None) is not None:
            yield  # within another one
            return
        self._limits.read = {}
        try:
            yield
        finally:
            self._limits.read = None

    def once(self, name: Hashable, read: Callable[[], T]) -> T:
        """What ``read`` answers; within a ``moment``, what it answered under this name before."""
        known: dict[Hashable, Any] | None = getattr(self._limits, "read", None)
        if known is None:
            return read()
        if name not in known:
            known[name] = read()
        found: T = known[name]
        return found

    def time_ms(self) -> int:
        """The server's clock, Unix milliseconds."""
        return self.once("time", self._time_ms)

    def _time_ms(self) -> int:
        seconds, microseconds = self.read(lambda client: client.time(**_of_one_node(client)))
        return int(seconds) * 1000 + int(microseconds) // 1000

    def inform(self) -> dict[str, Any]:
        """``url`` (no password) and ``info`` (flat): what the server says of itself in one trip."""
        return {"url": shown_url(self.url), "info": self.read(lambda client: client.info(**_of_one_node(client)))}

    def describe(self) -> dict[str, Any]:
        """What the server says of itself: ``url`` (no password), ``info`` (flat), ``time_ms``, ``config`` (what may
        be read)."""
        told = self.inform()  # first: where the server is away each question waits for it
        config: dict[str, str] = {}
        for name in ("save", "appendonly", "appendfsync", "maxmemory-policy", "databases"):
            try:
                config.update(self.read(lambda client: client.config_get(name, **_of_one_node(client))))  # noqa: B023
            except SchedulerError:
                continue  # managed servers refuse CONFIG
        return {
            **told,
            "time_ms": self.time_ms(),
            "config": config,
        }

    def close(self) -> None:
        """Closes all connections but those on which other threads wait; the next call opens new ones."""
        self._clients.close()

    def run(
        self,
        name: str,
        keys: object,
        items: Sequence[Any] = (),
        /,
        *,
        resend: bool = True,
        when_resent: Mapping[str, Any] | None = None,
        sent_before: bool = False,
        **arguments: Any,
    ) -> Any:
        """Runs a script by name. ``when_resent``: arguments that differ once it may have been carried out before;
        ``sent_before``: that is so the first time already. See ``call`` for errors."""
        found = script(name)
        packed = found.pack(keys, arguments, items)
        sent = sent_before

        def send(client: Any) -> Any:
            nonlocal sent, packed
            if sent and when_resent:
                packed = found.pack(keys, {**arguments, **when_resent}, items)
            try:
                return _evaluated(client, found, packed)
            except failures.ERRORS_OF_REDIS as error:
                sent = sent or failures.may_have_happened(error)
                raise

        return self._call(send, resend=resend, changes=found.changes, sent_before=sent_before)

    def run_ahead(self, name: str, calls: Iterable[Call], *, when_resent: Mapping[str, Any]) -> Iterator[Any]:
        """Runs a script for each of the calls, in order; the replies as they come. Each call is sent before the one
        before it is answered: the server works while the next is made.

        The first goes by itself, and teaches the server the script. Should a later one fail, then that and the one
        behind it may have been carried out: both are sent again, one by one, with ``when_resent``.
        """
        found = script(name)
        coming = iter(calls)
        unanswered: deque[Call] = deque()

        def commands() -> Iterator[tuple[Any, ...]]:
            for call in coming:
                unanswered.append(call)
                yield ("EVALSHA", found.sha, len(found.keys), *found.pack(call.keys, call.arguments, call.items))

        def by_itself(call: Call, *, sent_before: bool) -> Any:
            return self.run(
                name, call.keys, call.items, when_resent=when_resent, sent_before=sent_before, **call.arguments
            )

        for call in islice(coming, 1):
            yield by_itself(call, sent_before=False)
        client = self.client
        if isinstance(client, Client) and getattr(self._limits, "seconds", None) is None:
            with suppress(*failures.ERRORS_OF_REDIS, UnicodeError):
                for reply in client.in_flight(commands()):
                    unanswered.popleft()
                    yield reply
        for call in unanswered:
            yield by_itself(call, sent_before=True)
        for call in coming:
            yield by_itself(call, sent_before=False)

    def run_each(self, name: str, calls: Sequence[Call]) -> list[Any]:
        """Runs a script once for each of the calls, in one round trip; the replies in their order.

        For scripts that may be carried out again: where the trip fails, all of it is sent once more.
        """
        if len(calls) <= 1:
            return [self.run(name, call.keys, call.items, **call.arguments) for call in calls]
        found = script(name)
        packed = [found.pack(call.keys, call.arguments, call.items) for call in calls]

        def send(client: Any) -> list[Any]:
            if _is_cluster(client):  # its pipelines take no scripts
                return [_evaluated(client, found, each) for each in packed]
            pipeline = client.pipeline(transaction=False)
            for each in packed:
                pipeline.evalsha(found.sha, len(found.keys), *each)
            replies = list(pipeline.execute(raise_on_error=False))
            problems = [reply for reply in replies if isinstance(reply, Exception)]
            if any(isinstance(problem, NoScriptError) for problem in problems):
                return [_evaluated(client, found, each) for each in packed]
            if problems:
                raise problems[0]
            return replies

        replies: list[Any] = self._call(send, resend=True, changes=found.changes)
        return replies

    def read(self, send: Callable[[Any], T]) -> T:
        """One request that changes nothing. StoreUnavailable."""
        return self._call(send, resend=True, changes=False)

    def call(self, send: Callable[[Any], T], *, resend: bool = True) -> T:
        """One request, sent again while the server is away, for at most ``patience`` seconds.

        ``resend`` must be False where carrying it out twice would do harm. Raises StoreUnavailable (nothing was
        changed), OutcomeUnknown (it may have been carried out), or what the script refused with.
        """
        return self._call(send, resend=resend, changes=True)

    def _call(self, send: Callable[[Any], T], *, resend: bool, changes: bool, sent_before: bool = False) -> T:
        budget = getattr(self._limits, "seconds", None)
        limit = self.patience if budget is None else min(budget, self.patience)
        began, pause = time.monotonic(), 0.02
        while True:
            try:
                return send(self.client if budget is None else self._clients.within(budget))
            except failures.ERRORS_OF_REDIS as error:
                may_have_happened = changes and (sent_before or failures.may_have_happened(error))
                if not failures.is_transient(error):
                    raise failures.translated(error) from error
                share = NOBODY_SHARE if budget is not None and failures.nobody_listens(error) else 1.0
                if time.monotonic() + pause > began + limit * share or (may_have_happened and not resend):
                    raise self._given_up(error, may_have_happened) from error
                sent_before = may_have_happened
                self._revive(error)
            except UnicodeError as error:
                raise OptionInvalid("Text with lone surrogates cannot be stored.") from error
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, 0.5)

    def wait_for_token(self, keys: Sequence[str], timeout: float) -> str | None:
        """Blocks until one of the wake lists has a token, at most ``timeout`` and ``LONGEST_WAIT`` seconds; the key it
        was in.

        Each wait has a connection to itself, which waits longer than that and never sends again.
        """
        try:
            popped = _pop_first(self._clients.waiting, keys, min(max(timeout, 0.01), LONGEST_WAIT))
        except failures.ERRORS_OF_REDIS as error:
            self._clients.drop_waiting()
            self._revive(error)
            raise self._given_up(error, False) from error
        return popped[0].decode() if popped else None

    def wait_and_run(self, key: str, timeout: float, name: str, call: Call) -> Any:
        """Blocks as ``wait_for_token`` does, and runs the script as soon as the wait is over, by a token or its time;
        its reply.

        Both are sent together, and the server carries out the second where it stands when the first ends. A cluster
        must be asked in two steps (see ``waits_ahead``). OutcomeUnknown: the script may have run or may yet run.
        """
        found = script(name)
        packed = found.pack(call.keys, call.arguments, call.items)
        seconds = min(max(timeout, 0.01), LONGEST_WAIT)
        try:
            return wait_and_run(
                self._clients.waiting,
                ("BLPOP", key, str(seconds)),
                ("EVALSHA", found.sha, len(found.keys), *packed),
                otherwise=("EVAL", found.source, len(found.keys), *packed),
            )
        except failures.ERRORS_OF_REDIS as error:
            if not failures.is_transient(error):
                raise failures.translated(error) from error
            self._clients.drop_waiting()
            self._revive(error)
            raise self._given_up(error, failures.may_have_happened(error)) from error

    @property
    def waits_ahead(self) -> bool:
        """Whether ``wait_and_run`` can send both at once."""
        return not _is_cluster(self.client)

    def wait_for_entries(self, stream: str, after: str, timeout: float) -> list[tuple[str, dict[bytes, bytes]]]:
        """Blocks until the stream has entries after this id, at most ``timeout`` and ``LONGEST_WAIT`` seconds.

        The same connection and the same rules as ``wait_for_token``.
        """
        block = int(min(max(timeout, 0.01), LONGEST_WAIT) * 1000)
        try:
            client: Any = self._clients.waiting
            reply = client.xread({stream: after}, block=block)
        except failures.ERRORS_OF_REDIS as error:
            self._clients.drop_waiting()
            self._revive(error)
            raise self._given_up(error, False) from error
        found = reply.values() if isinstance(reply, dict) else (entries for _, entries in reply or ())
        return [(entry_id.decode(), fields) for entries in found for entry_id, fields in _entries(entries)]

    def ping(self) -> None:
        """StoreUnavailable where the server does not answer."""
        self.read(lambda client: client.ping())

    def _revive(self, error: Exception) -> None:
        """An embedded server that is gone is started again, by whoever notices first. Connections to one that has
        become a replica are closed: its name may lead to its successor, and they never will."""
        if isinstance(error, ReadOnlyError):
            self._clients.close_rested()
        elif isinstance(error, RedisConnectionError):
            self._clients.revive()

    def _given_up(self, error: Exception, may_have_happened: bool) -> SchedulerError:
        where = shown_url(self.url)
        if may_have_happened:
            return OutcomeUnknown(
                f"The store at {where} stopped answering; the request may or may not have been carried out.",
                fix="Look before you repeat it, or repeat it with the same id or unique key.",
            )
        return StoreUnavailable(
            f"The store at {where} cannot be reached: {failures.reason(error)}",
            fix="Start the server, or correct SCHEDULER_REDIS_URL; `manage.py doctor` checks it.",
        )


def _evaluated(client: Any, found: Script, packed: Sequence[Any]) -> Any:
    try:
        return client.execute_command("EVALSHA", found.sha, len(found.keys), *packed)
    except NoScriptError:
        return client.eval(found.source, len(found.keys), *packed)


def _entries(entries: Any) -> Any:
    """redis-py puts the entries of a stream into a list of their own under its newer protocol."""
    return entries[0] if entries and isinstance(entries[0], list) else entries


def _of_one_node(client: Any) -> dict[str, Any]:
    """Options of a command that a cluster would otherwise answer once for every node."""
    return {"target_nodes": client.get_default_node()} if _is_cluster(client) else {}


def _is_cluster(client: Any) -> bool:
    return isinstance(client, RedisCluster)


def _pop_first(client: Any, keys: Sequence[str], timeout: float) -> Any:
    """Key and first element of the first list that has one. One call can wait in one slot of a cluster only: there,
    the slots take turns."""
    if not _is_cluster(client):
        return client.blpop(list(keys), timeout=timeout)
    slots: dict[int, list[str]] = defaultdict(list)
    for key in keys:
        slots[client.keyslot(key)].append(key)
    turn = timeout if len(slots) == 1 else min(TURN_SECONDS, timeout)
    deadline = time.monotonic() + timeout
    for lists in cycle(slots.values()):
        popped = client.blpop(lists, timeout=turn)
        if popped or time.monotonic() >= deadline:
            return popped
    return None
