"""A proxy between the product and the server that loses, delays, cuts and repeats what passes through.

It speaks just enough of the protocol to know where a request ends, so that "the request arrived and the reply did not"
is exactly that. One thread per connection; addresses are Unix sockets.
"""

from __future__ import annotations

import contextlib
import random
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Weather:
    """How likely each fault is for one request, and how long every reply is held up."""

    lose_reply: float = 0.0  # carry the request out, then close instead of answering
    lose_request: float = 0.0  # close instead of passing the request on
    repeat: float = 0.0  # pass the request on twice, on another connection the second time
    repeatable: tuple[bytes, ...] = (b"",)  # … but only requests in which one of these occurs
    cut_reply: float = 0.0  # close in the middle of the reply
    delay_seconds: float = 0.0
    blackhole: bool = False  # accept, pass nothing on, answer nothing


CLEAR = Weather()


class Proxy:
    """Listens on ``path`` and passes on to the server's socket ``upstream`` through the ``weather`` of the moment."""

    def __init__(self, upstream: str, path: Path, *, seed: int = 0) -> None:
        self.upstream = upstream
        self.path = path
        self.url = f"unix://{path}"
        self.weather = CLEAR
        self.taken: Counter[str] = Counter()  # fault → how often it happened
        self._random = random.Random(seed)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._open: set[socket.socket] = set()
        self._closed = False

    def start(self) -> None:
        self._listener.bind(str(self.path))
        self._listener.listen(256)
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def stop(self) -> None:
        """Closes the listener and every connection."""
        self._closed = True
        # A thread that is blocked in accept is only woken by a shutdown of the socket, not by closing it.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_all()
        self.path.unlink(missing_ok=True)

    def drop_all(self) -> None:
        """Closes every connection at once, as a restarted balancer does."""
        for connection in list(self._open):
            _close(connection)

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One connection: requests up, replies down, until a fault or an end."""
        server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            server.connect(self.upstream)
        except OSError:
            _close(client)
            return
        self._open |= {client, server}
        doom = _Doom()
        down = threading.Thread(target=self._pass_replies, args=(server, client, doom), daemon=True)
        down.start()
        try:
            self._pass_requests(client, server, doom)
        except OSError:
            pass
        finally:
            if not doom.loses_reply:
                _close(server)
            down.join(timeout=10)
            _close(client)
            _close(server)
            self._open -= {client, server}

    def _pass_requests(self, client: socket.socket, server: socket.socket, doom: _Doom) -> None:
        pending = b""
        while chunk := client.recv(65536):
            pending += chunk
            end = whole_requests(pending)
            if not end:
                continue
            requests, pending = pending[:end], pending[end:]
            weather = self.weather
            if weather.blackhole:
                self.taken["blackhole"] += 1
                continue
            if self._happens(weather.lose_request, "lose request"):
                return
            can_repeat = any(part in requests for part in weather.repeatable)
            if can_repeat and self._happens(weather.repeat, "repeat"):
                self._send_apart(requests)
            if self._happens(weather.lose_reply, "lose reply"):
                doom.loses_reply = True
            elif self._happens(weather.cut_reply, "cut reply"):
                doom.cuts_reply = True
            server.sendall(requests)
            if doom.loses_reply:
                return

    def _pass_replies(self, server: socket.socket, client: socket.socket, doom: _Doom) -> None:
        try:
            while chunk := server.recv(65536):
                if doom.loses_reply:  # the server has answered, so it has done what was asked
                    break
                if self.weather.delay_seconds:
                    time.sleep(self.weather.delay_seconds)
                if doom.cuts_reply:
                    client.sendall(chunk[: len(chunk) // 2])
                    break
                client.sendall(chunk)
        except OSError:
            pass
        finally:
            _close(client)

    def _send_apart(self, requests: bytes) -> None:
        """The same bytes once more, on a connection of their own; the answer is read and thrown away."""
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as twin:
            twin.settimeout(1)
            twin.connect(self.upstream)
            twin.sendall(requests)
            twin.recv(65536)

    def _happens(self, chance: float, fault: str) -> bool:
        if chance and self._random.random() < chance:
            self.taken[fault] += 1
            return True
        return False


@dataclass
class _Doom:
    """What is to become of the connection's next reply."""

    loses_reply: bool = False
    cuts_reply: bool = False


def whole_requests(data: bytes) -> int:
    """How many bytes at the start of ``data`` are whole requests (arrays of bulk strings)."""
    end = 0
    while (after := _request_end(data, end)) is not None:
        end = after
    return end


def _request_end(data: bytes, start: int) -> int | None:
    line_end = data.find(b"\r\n", start)
    if line_end < 0:
        return None
    if data[start : start + 1] != b"*":
        return line_end + 2  # an inline command
    position = line_end + 2
    for _ in range(int(data[start + 1 : line_end])):
        line_end = data.find(b"\r\n", position)
        if line_end < 0:
            return None
        position = line_end + 2 + int(data[position + 1 : line_end]) + 2
        if position > len(data):
            return None
    return position


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
