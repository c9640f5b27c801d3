"""A browser's WebSocket without a browser: speaks ASGI to the whole application."""

from __future__ import annotations

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator

from dashboard.routing import site

ORIGIN = b"http://localhost"


class Socket(ApplicationCommunicator):
    def __init__(self, cookie: str | None, *, origin: bytes | None = ORIGIN, path: str = "/ws/dashboard/") -> None:
        headers = [(b"host", b"localhost")]
        if origin is not None:
            headers.append((b"origin", origin))
        if cookie:
            headers.append((b"cookie", f"sessionid={cookie}".encode()))
        super().__init__(
            site(None),
            {
                "type": "websocket",
                "scheme": "ws",
                "path": path,
                "query_string": b"",
                "headers": headers,
                "client": ["127.0.0.1", 1],
                "server": ["127.0.0.1", 80],
                "subprotocols": [],
            },
        )

    async def open(self) -> bool:
        """Shakes hands; False when that was refused."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(timeout=10)
        return bool(answer["type"] == "websocket.accept")

    async def frame(self) -> dict[str, Any]:
        """The next frame, decoded."""
        message = await self.receive_output(timeout=10)
        assert message["type"] == "websocket.send", message
        found: dict[str, Any] = json.loads(message["text"])
        return found

    async def closed(self) -> int:
        """Waits until the server closes, whatever it says before, and answers the code."""
        while True:
            message = await self.receive_output(timeout=10)
            if message["type"] == "websocket.close":
                await self.leave()
                return int(message["code"])

    async def say(self, words: str | bytes) -> None:
        key = "text" if isinstance(words, str) else "bytes"
        await self.send_input({"type": "websocket.receive", key: words})

    async def leave(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout=10)
