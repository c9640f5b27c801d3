"""The WebSocket side: origin first, then session and user, then the consumer."""

from __future__ import annotations

from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from django.urls import path, re_path

from dashboard.consumers import DashboardConsumer
from dashboard.origins import SameOrigin, refuse

websocket_urlpatterns: list[Any] = [
    path("ws/dashboard/", DashboardConsumer.as_asgi()),  # type: ignore[arg-type]  # an ASGI application, not a view
    re_path("", refuse),  # type: ignore[arg-type]
]

application = SameOrigin(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))
"""Everything a server needs for ``websocket`` connections."""
