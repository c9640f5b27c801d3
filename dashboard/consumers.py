"""The one WebSocket of a page. It only tells: figures that changed, as hints. It takes no orders; actions are POSTs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from importlib import import_module
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.contrib.auth import get_user
from django.http import HttpRequest

from dashboard.feed import feed
from dashboard.permissions import VIEW, may

RECHECK_SECONDS = 20.0
"""How often it is asked again whether the reader may still see this: a lost right closes the socket within 30 s."""

SOCKETS_PER_USER = 20
FRAMES_TAKEN = 50
"""So many frames a page may send in its life; it has no reason to send any."""

NOT_ALLOWED, TOO_MANY, FLOOD = 4403, 4429, 4408


class DashboardConsumer(AsyncWebsocketConsumer):
    """Figures of the whole, for people who may see the dashboard."""

    channel_layer_alias = ""  # of no layer: frames are made in this process, there is no message bus to depend on

    open_sockets: Counter[Any] = Counter()

    async def connect(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self._taken = 0
        self._user_id: Any = None
        if not await _may_see(self.scope):
            await self.close(NOT_ALLOWED)
            return
        user_id = self.scope["user"].pk  # type: ignore[union-attr]  # somebody who may see has a key
        if self.open_sockets[user_id] >= SOCKETS_PER_USER:
            await self.close(TOO_MANY)
            return
        self._user_id = user_id
        self.open_sockets[user_id] += 1
        await self.accept()
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._recheck())]

    async def disconnect(self, code: int) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._user_id is not None:
            self.open_sockets[self._user_id] -= 1
            if not self.open_sockets[self._user_id]:
                del self.open_sockets[self._user_id]

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing that a page sends means anything; one that keeps sending is cut off."""
        self._taken += 1
        if self._taken > FRAMES_TAKEN:
            await self.close(FLOOD)

    async def _tell(self) -> None:
        async with contextlib.aclosing(feed().frames()) as frames:
            async for frame in frames:
                await self.send(frame)

    async def _recheck(self) -> None:
        while True:
            await asyncio.sleep(RECHECK_SECONDS * random.uniform(0.8, 1.2))  # spreads the queries
            if not await _may_see(self.scope):
                await self.close(NOT_ALLOWED)
                return


@database_sync_to_async
def _may_see(scope: Any) -> bool:
    """Whether the session still stands and its user may see the dashboard, read anew from where both are kept."""
    session = scope.get("session")
    if session is None or not session.session_key:
        return False
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session.session_key)
    return may(get_user(request), VIEW)
