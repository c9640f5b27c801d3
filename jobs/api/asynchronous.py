"""The one place where blocking functions get their async twins."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

P = ParamSpec("P")
R = TypeVar("R")


def twin(function: Callable[P, R]) -> Callable[P, Coroutine[Any, Any, R]]:
    """``function`` for async code, with the same arguments and answer; it runs in a thread of its own.

    Not in Django's one thread for the ORM: an engine call needs no database, and must not queue behind those that do.
    """

    @wraps(function)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> R:
        return await sync_to_async(function, thread_sensitive=False)(*args, **kwargs)

    answered.__name__ = f"a{function.__name__}"
    answered.__doc__ = f"The async twin of ``{function.__name__}``. {function.__doc__ or ''}"
    return answered


def producing_twin(function: Callable[P, R], *, waits_for_commit: bool) -> Callable[P, Coroutine[Any, Any, R]]:
    """The twin of an enqueue. One that waits for a commit runs where the transaction does: in the ORM's thread."""
    return sync_to_async(function, thread_sensitive=waits_for_commit)
