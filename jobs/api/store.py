"""The server under the engine, for those who look after it and for pages that must not hang with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jobs.api.asynchronous import twin
from jobs.engine import get_engine


def server() -> dict[str, Any]:
    """What the server says of itself: ``url`` (no password), ``info``, ``time_ms``, ``config`` and, of that, ``save``.

    Managed servers keep their configuration to themselves: then ``config`` is empty and ``save`` None.
    """
    facts = get_engine().store.describe()
    return {**facts, "save": facts["config"].get("save")}


def server_info() -> dict[str, Any]:
    """The same in one trip to the server: ``url`` and ``info``."""
    return get_engine().store.inform()


@contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Within it, calls of this thread give up after about ``seconds``, retries included."""
    with get_engine().store.budget(seconds):
        yield


@contextmanager
def moment() -> Iterator[None]:
    """Within it, this thread asks only once for the server's time, for what is paused, which workers there are and how
    the pools stand: what it tells is of one moment. For those who only look."""
    with get_engine().store.moment():
        yield


aserver = twin(server)
aserver_info = twin(server_info)
