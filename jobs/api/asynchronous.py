"""The one place where blocking functions get their async twins."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from asgiref.sync import sync_to_async

P = ParamSpec("P")
R = TypeVar("R")


def twin(function: Callable[P, R], *, uses_database: bool = False) -> Callable[P, Coroutine[Any, Any, R]]:
    """``function`` for async code, with the same arguments and answer; it runs in a thread.

    What ``uses_database`` runs in Django's one thread for the ORM, where connections and transactions are. All else
    does not: a call of the engine must not queue behind queries, nor leave connections in threads that nobody tidies.
    """
    in_thread = sync_to_async(function, thread_sensitive=uses_database)

    @wraps(function)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> R:
        return await in_thread(*args, **kwargs)

    answered.__name__ = f"a{function.__name__}"
    answered.__doc__ = f"The async twin of ``{function.__name__}``. {function.__doc__ or ''}"
    return answered
