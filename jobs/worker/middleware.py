"""What wraps each attempt. The chain is built once for a child; an empty one is the handler's call itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from django.utils.module_loading import import_string

from jobs.core.context import Context

Call = Callable[[Context], Any]
"""Runs the attempt of this context; for an async job type it answers an awaitable."""

Middleware = Callable[[Call], Call]


def build_chain(paths: Iterable[str], innermost: Call) -> Call:
    """``innermost`` wrapped by the middleware at these dotted paths, the first of them outermost."""
    middlewares: list[Middleware] = [import_string(path) for path in paths]
    return reduce(lambda call, wrap: wrap(call), reversed(middlewares), innermost)
