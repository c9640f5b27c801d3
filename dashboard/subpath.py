"""The site below a path of a proxy, whether the proxy takes that path away or leaves it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.handlers.asgi import get_script_prefix
from django.urls import Resolver404, ResolverMatch, resolve


class BelowPath:
    """Tells what it wraps below which path it is shown (``FORCE_SCRIPT_NAME``), as servers told of it would."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        prefix = settings.FORCE_SCRIPT_NAME
        if prefix and "path" in scope:
            path = scope["path"]
            below = path == prefix or path.startswith(f"{prefix}/")
            scope = {**scope, "root_path": prefix, "path": path if below else prefix + path}
        return await self.application(scope, receive, send)


def address(scope: dict[str, Any]) -> ResolverMatch | None:
    """Which address of the dashboard somebody connects to, wherever the project has put it; None: none of it."""
    try:
        found = resolve(scope["path"].removeprefix(get_script_prefix(scope).rstrip("/")))
    except Resolver404:
        return None
    return found if "dashboard" in found.app_names else None
