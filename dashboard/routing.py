"""The WebSocket side: the origin first, then the consumer, which asks for session, user and permission itself."""

from __future__ import annotations

from typing import Any

from channels.routing import URLRouter
from channels.sessions import CookieMiddleware
from django.urls import path, re_path

from dashboard.consumers import DashboardConsumer
from dashboard.origins import SameOrigin, refuse

websocket_urlpatterns: list[Any] = [
    path("ws/dashboard/", DashboardConsumer.as_asgi()),  # type: ignore[arg-type]  # an ASGI application, not a view
    re_path("", refuse),  # type: ignore[arg-type]
]

application = SameOrigin(CookieMiddleware(URLRouter(websocket_urlpatterns)))
"""Everything a server needs for ``websocket`` connections."""
