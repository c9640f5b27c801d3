"""The line between the supervisor and one child: typed messages over a socket pair.

Its closing is a message too: a child whose link reads end-of-file has no supervisor any more and ends itself.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from typing import Any

import msgspec

from jobs.worker.messages import FromChild, FromSupervisor, Message

_LENGTH = struct.Struct("!I")
_encode = msgspec.msgpack.Encoder().encode


class Link:
    """One end. ``send`` may be called from any thread, ``receive`` from one.

    The child's end waits until it can send or has received something. The supervisor's never does: a child that is
    frozen, or whose handlers hold the interpreter's lock, reads nothing, and the others need their supervisor.
    """

    def __init__(self, endpoint: socket.socket, expects: Any, *, waits: bool) -> None:
        self._socket = endpoint
        self._decode = msgspec.msgpack.Decoder(expects).decode
        self._flags = 0 if waits else socket.MSG_DONTWAIT
        self._sending = threading.Lock()
        self._unsent = bytearray()
        self._buffer = bytearray()
        self.closed = False

    @classmethod
    def of_supervisor(cls, endpoint: socket.socket) -> Link:
        return cls(endpoint, FromChild, waits=False)

    @classmethod
    def of_child(cls, endpoint: socket.socket) -> Link:
        return cls(endpoint, FromSupervisor, waits=True)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Message) -> bool:
        """False when nobody listens any more; the end of the peer is learnt and handled elsewhere."""
        body = _encode(message)
        with self._sending:
            self._unsent += _LENGTH.pack(len(body)) + body
            return self._push()

    @property
    def has_unsent(self) -> bool:
        """Whether the peer has no room for all that was sent: ``push`` when it has."""
        return bool(self._unsent)

    def push(self) -> None:
        """Sends what is unsent, as far as there is room for it."""
        with self._sending:
            self._push()

    def _push(self) -> bool:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent, self._flags)]
        except BlockingIOError:
            pass
        except OSError:
            self._unsent.clear()
            return False
        return True

    def receive(self) -> list[Any]:
        """The whole messages that have arrived. Sets ``closed`` at end-of-file."""
        try:
            chunk = self._socket.recv(1 << 16, self._flags)
        except BlockingIOError:
            return []
        except OSError:
            chunk = b""
        self.closed = not chunk
        self._buffer += chunk
        return self._whole_messages()

    def receive_rest(self) -> list[Any]:
        """All that a dead peer has said and that was not read yet.

        Does not wait for end-of-file: a program that the peer started may have inherited its end, and live on.
        """
        self.closed = True
        return self.receive_all()

    def receive_all(self) -> list[Any]:
        """All whole messages that are there, however many. Does not wait, and does not notice the end of the peer."""
        with contextlib.suppress(OSError):
            while chunk := self._socket.recv(1 << 16, socket.MSG_DONTWAIT):
                self._buffer += chunk
        return self._whole_messages()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _whole_messages(self) -> list[Any]:
        messages = []
        start = 0
        while len(self._buffer) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, start)
            end = start + _LENGTH.size + length
            if end > len(self._buffer):
                break
            messages.append(self._decode(memoryview(self._buffer)[start + _LENGTH.size : end].tobytes()))
            start = end
        del self._buffer[:start]
        return messages
