"""What a server is given: the site of a project, with the dashboard's WebSocket beside its pages.

The address of the WebSocket is one of ``dashboard.urls``, so it is found wherever a project includes these. There the
origin is asked for first, then the consumer asks for session, user and permission itself.
"""

from __future__ import annotations

import warnings
from typing import Any

from channels.routing import ProtocolTypeRouter
from channels.sessions import CookieMiddleware

from dashboard.consumers import DashboardConsumer
from dashboard.gate import Gate
from dashboard.origins import SameOrigin, refuse
from dashboard.subpath import BelowPath, address

FILES_WARNING = "StreamingHttpResponse must consume synchronous iterators"
"""Django's, of the iterators by which WhiteNoise hands files over: they cost nothing for files of our size."""

_consumer = DashboardConsumer.as_asgi()


async def _routed(scope: Any, receive: Any, send: Any) -> Any:
    found = address(scope)
    wanted = found is not None and found.url_name == "socket"
    return await (_consumer if wanted else refuse)(scope, receive, send)


application = SameOrigin(CookieMiddleware(_routed))
"""Everything a server needs for ``websocket`` connections of the dashboard."""


def site(http: Any, websocket: Any = application) -> BelowPath:
    """The ASGI application of a project. ``http``: what Django's ``get_asgi_application`` answers.

    It also knows the path of a proxy below which the site is shown (``FORCE_SCRIPT_NAME``), and refuses large bodies
    that are sent to the dashboard before they are received. ``websocket``: where a project has others of its own.
    """
    warnings.filterwarnings("ignore", message=FILES_WARNING)
    return BelowPath(ProtocolTypeRouter({"http": Gate(http), "websocket": websocket}))
