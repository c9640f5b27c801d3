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
from django.contrib.auth.base_user import AbstractBaseUser
from django.http import HttpRequest

from dashboard.feed import feed
from dashboard.outage import AWAY
from dashboard.permissions import VIEW, may

RECHECK_SECONDS = 20.0
"""How often it is asked again whether the reader may still see this: a lost right closes the socket within 30 s."""

SOCKETS_PER_USER = 20
FRAMES_TAKEN = 50
"""So many frames a page may send in its life; it has no reason to send any."""

LARGEST_FRAME = 1_000
"""Letters or bytes of one of them. What is larger is sent by no page."""

NOT_ALLOWED, TOO_MANY, FLOOD = 4403, 4429, 4408
NOT_NOW = 1013
"""Nobody can tell whether the reader may see this: the page tries again."""


class DashboardConsumer(AsyncWebsocketConsumer):
    """Figures of the whole, for people who may see the dashboard."""

    channel_layer_alias = ""  # of no layer: frames are made in this process, there is no message bus to depend on

    open_sockets: Counter[Any] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One connection. However it ends, also cancelled by a server that stops or broken while it opens, its place
        is given back: whoever lost twenty like that would see nothing live until this process ends."""
        self._tasks: list[asyncio.Task[None]] = []
        self._taken, self._cut_off = 0, False
        self._user_id: Any = None
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._end()

    async def connect(self) -> None:
        self._session_key = self.scope["cookies"].get(settings.SESSION_COOKIE_NAME, "")
        reader = await self._allowed()
        if reader is None:
            return
        user_id = reader.pk
        if self.open_sockets[user_id] >= SOCKETS_PER_USER:
            await self.close(TOO_MANY)
            return
        self._user_id = user_id
        self.open_sockets[user_id] += 1
        await self.accept()
        self._tasks = [asyncio.create_task(self._tell()), asyncio.create_task(self._recheck())]

    async def _end(self) -> None:
        if self._user_id is not None:
            self.open_sockets[self._user_id] -= 1
            if not self.open_sockets[self._user_id]:
                del self.open_sockets[self._user_id]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing that a page sends means anything; one that keeps sending, or sends much, is cut off, once: what was
        on its way then meets a closed socket, and to close that again is an error."""
        self._taken += 1
        if not self._cut_off and (self._taken > FRAMES_TAKEN or len(text_data or bytes_data or "") > LARGEST_FRAME):
            self._cut_off = True
            await self.close(FLOOD)

    async def _tell(self) -> None:
        async with contextlib.aclosing(feed().frames()) as frames:
            async for frame in frames:
                await self.send(frame)

    async def _recheck(self) -> None:
        while True:
            await asyncio.sleep(RECHECK_SECONDS * random.uniform(0.8, 1.2))  # spreads the queries
            if await self._allowed() is None:
                return

    async def _allowed(self) -> AbstractBaseUser | None:
        """Who reads this; the socket is closed where they may not, or where the database that knows is away."""
        try:
            reader = await _reader(self._session_key)
        except AWAY:
            await self.close(NOT_NOW)
            return None
        if reader is None:
            await self.close(NOT_ALLOWED)
        return reader


@database_sync_to_async
def _reader(session_key: str) -> AbstractBaseUser | None:
    """The user of the session if both still stand and the user may see the dashboard, read anew from the database."""
    if not session_key:
        return None
    request = HttpRequest()
    request.session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    user = get_user(request)
    return user if isinstance(user, AbstractBaseUser) and may(user, VIEW) else None
