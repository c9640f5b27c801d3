"""The clients by which a process speaks to its server: one for short questions, one for each budget, one for waits."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import redis

from jobs.store import embedded
from jobs.store.client import close_rested
from jobs.store.urls import connect

SOCKET_SECONDS = 5.0
"""How long one answer may take."""

LONGEST_WAIT = 20.0
"""Seconds for which one wait may block: a connection that died silently is noticed soon after."""

WAITING_SECONDS = LONGEST_WAIT + SOCKET_SECONDS
"""How long the answer to a wait may take."""

BUDGETS_KEPT = 8
"""So many different budgets have their clients kept."""


class Clients:
    """Clients of redis-py for one address. Made when they are first asked for, and anew after a fork; all threads share
    them: servers of ASGI have a new one for each request, and the slots of a pool wait by turns."""

    def __init__(self, url: str, var_dir: Path) -> None:
        self._url = url
        self._var_dir = var_dir
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._usual: redis.Redis | None = None
        self._kept: dict[tuple[int, float], redis.Redis] = {}  # by process and seconds

    @property
    def usual(self) -> redis.Redis:
        """For commands that take no longer than a moment."""
        if self._usual is None or self._pid != os.getpid():
            with self._lock:
                if self._usual is None or self._pid != os.getpid():
                    self._usual = self._connect(SOCKET_SECONDS)
                    self._pid = os.getpid()
        return self._usual

    @property
    def waiting(self) -> redis.Redis:
        """For commands that block for as long as ``LONGEST_WAIT``."""
        return self.within(WAITING_SECONDS)

    def within(self, seconds: float) -> redis.Redis:
        """For answers that may take as long and no longer. It is kept: pages go from one budget to another and back,
        and a connection costs as much as a dozen questions."""
        key = os.getpid(), seconds
        if (kept := self._kept.get(key)) is not None:
            return kept
        made = self._connect(seconds)  # not within the lock: the server may be slow, and others have theirs
        with self._lock:
            while len(self._kept) >= BUDGETS_KEPT:
                self._kept.pop(next(iter(self._kept)))  # closed with the last who uses it
            return self._kept.setdefault(key, made)

    def drop_waiting(self) -> None:
        """The server is away: who waits next begins anew."""
        with self._lock:
            self._kept.pop((os.getpid(), WAITING_SECONDS), None)

    def close_rested(self) -> None:
        """Closes the connections that nobody uses at the moment."""
        with self._lock:
            mine = [client for (pid, _), client in self._kept.items() if pid == os.getpid()]
            for client in filter(None, (self._usual, *mine)):
                close_rested(client)

    def close(self) -> None:
        """Closes all connections but those on which other threads wait; new ones are opened when they are needed."""
        with self._lock:
            if self._usual is not None and self._pid == os.getpid():
                self._usual.close()
            self._usual = None
            for (pid, seconds), client in self._kept.items():
                if pid == os.getpid() and seconds == WAITING_SECONDS:
                    close_rested(client)
                elif pid == os.getpid():
                    client.close()
            self._kept.clear()

    def revive(self) -> None:
        """Starts an embedded server again if it is gone."""
        if self._url.startswith(("embedded:", "memory:")):
            embedded.ensure(self._url, self._var_dir)

    def _connect(self, seconds: float) -> redis.Redis:
        url = self._url
        if url.startswith(("embedded:", "memory:")):
            url = embedded.ensure(url, self._var_dir)
        return connect(url, seconds)
