"""A reverse proxy as people put in front of web processes: below a path, which it takes away, and in turn to each."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Sequence

LONGEST_HEAD = 65_536


class Proxy:
    """Listens on a port of its own in a thread of its own. A process that does not answer is passed over."""

    def __init__(self, prefix: str, ports: Sequence[int]) -> None:
        self.prefix = prefix
        self.served = dict.fromkeys(ports, 0)  # port → requests that it answered
        self._turns = itertools.cycle(ports)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        opened = asyncio.start_server(self._serve, "127.0.0.1", 0, limit=LONGEST_HEAD)
        self._server = asyncio.run_coroutine_threadsafe(opened, self._loop).result(10)
        self.port: int = self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def stop(self) -> None:
        async def end() -> None:
            self._server.close()
            tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = self._without_prefix(await reader.readuntil(b"\r\n\r\n"))
            if head is None:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            back_reader, back_writer = await self._connect()
            back_writer.write(head)
            await asyncio.gather(_pour(reader, back_writer), _pour(back_reader, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass  # the browser thought better of it
        finally:
            writer.close()

    def _without_prefix(self, head: bytes) -> bytes | None:
        first, _, rest = head.partition(b"\r\n")
        method, target, version = first.split(b" ")
        if not target.startswith(self.prefix.encode() + b"/"):
            return None
        if b"upgrade: websocket" not in rest.lower():  # one request a connection keeps this proxy simple
            lines = [line for line in rest.split(b"\r\n") if not line.lower().startswith(b"connection:")]
            rest = b"\r\n".join([b"Connection: close", *lines])
        return b" ".join((method, target[len(self.prefix) :], version)) + b"\r\n" + rest

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for port in itertools.islice(self._turns, len(self.served)):
            try:
                found = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            self.served[port] += 1
            return found
        raise ConnectionRefusedError


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
