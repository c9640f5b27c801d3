"""Makes child processes quickly and safely: a small process that does nothing but fork.

Forking a process that has threads is unsafe, and the supervisor has threads; starting Python and Django anew takes
half a second. So the supervisor forks the nursery before its first thread, Django already loaded, and asks it for a
child whenever it needs one: about two milliseconds each. The nursery also reaps them and reports how they ended.

When the supervisor dies the kernel kills the nursery, and with the nursery its children: nothing is left behind.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import struct
import traceback
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from jobs.exceptions import SchedulerError
from jobs.runtime.process import die_with_parent
from jobs.runtime.signals import wake_at_shutdown, wake_only
from jobs.worker import cells

ChildMain = Callable[[int, socket.socket, socket.socket, int], int]
"""``main(number, ends of link and ledger, descriptor of the cells) -> exit code``: all of a child's life."""

_REQUEST = struct.Struct("!I")  # number of the child to make; the three descriptors travel beside it
_EVENT = struct.Struct("!cIi")  # kind, number, pid or exit code
_BORN, _ENDED = b"B", b"E"


class NurseryDied(SchedulerError):
    """The process that forks the workers has died; its children died with it."""

    code = "nursery_died"


class Conception(NamedTuple):
    """The supervisor's ends of what it shares with a child that is about to be born."""

    link: socket.socket
    ledger: socket.socket
    cells_fd: int


class Born(NamedTuple):
    number: int
    pid: int


class Ended(NamedTuple):
    number: int
    exit_code: int  # negative: the signal that killed it


class Nursery:
    """The supervisor's handle. Create it while the process still has one thread."""

    def __init__(self, child_main: ChildMain) -> None:
        self._socket, theirs = socket.socketpair()
        supervisor = os.getpid()
        gc.collect()
        gc.freeze()  # what exists now lives for ever: the collector need not touch, and so copy, the shared pages
        self.pid = os.fork()
        if self.pid == 0:
            self._socket.close()
            _NurseryProcess(theirs, supervisor, child_main).run()
        theirs.close()
        self._buffer = b""

    def request(self, number: int) -> Conception:
        """Ask for child ``number``; ``Born`` comes as an event."""
        link, its_link = socket.socketpair()
        ledger, its_ledger = socket.socketpair()
        cells_fd = cells.create()
        try:
            descriptors = [its_link.fileno(), its_ledger.fileno(), cells_fd]
            socket.send_fds(self._socket, [_REQUEST.pack(number)], descriptors)
        except OSError as error:
            raise NurseryDied from error
        finally:
            its_link.close()
            its_ledger.close()
        return Conception(link, ledger, cells_fd)

    def fileno(self) -> int:
        return self._socket.fileno()

    def read(self) -> list[Born | Ended]:
        """What has happened; blocks until something has. ``NurseryDied`` at end-of-file."""
        try:
            chunk = self._socket.recv(4096)
        except OSError as error:
            raise NurseryDied from error
        if not chunk:
            raise NurseryDied
        self._buffer += chunk
        whole = len(self._buffer) // _EVENT.size * _EVENT.size
        records, self._buffer = self._buffer[:whole], self._buffer[whole:]
        return [
            Born(number, value) if kind == _BORN else Ended(number, value)
            for kind, number, value in _EVENT.iter_unpack(records)
        ]

    def close(self) -> None:
        """Ends the nursery and whatever children are left."""
        self._socket.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class _NurseryProcess:
    """The other side of the fork: one thread, one loop."""

    def __init__(self, requests: socket.socket, supervisor: int, child_main: ChildMain) -> None:
        self._requests = requests
        self._supervisor = supervisor
        self._child_main = child_main
        self._numbers: dict[int, int] = {}  # pid → number

    def run(self) -> NoReturn:
        try:
            die_with_parent(self._supervisor)
            self._tend()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)

    def _tend(self) -> None:
        deaths = _listen_for_deaths()
        while True:
            readable, _, _ = select.select([self._requests, deaths], [], [])
            if deaths in readable:
                deaths.recv(4096)
                self._reap()
            if self._requests in readable and not self._serve_request():
                self._end()

    def _serve_request(self) -> bool:
        data, descriptors, _, _ = socket.recv_fds(self._requests, _REQUEST.size, 3)
        if not data:
            return False
        (number,) = _REQUEST.unpack(data)
        link, ledger = (socket.socket(fileno=descriptor) for descriptor in descriptors[:2])
        nursery = os.getpid()
        pid = _fork()
        if pid == 0:
            self._be_child(number, link, ledger, descriptors[2], nursery)
        link.close()
        ledger.close()
        os.close(descriptors[2])
        if pid is None:
            self._tell(_ENDED, number, os.EX_OSERR)
            return True
        self._numbers[pid] = number
        self._tell(_BORN, number, pid)
        return True

    def _be_child(
        self, number: int, link: socket.socket, ledger: socket.socket, cells_fd: int, nursery: int
    ) -> NoReturn:
        exit_code = 1
        try:
            self._requests.close()
            die_with_parent(nursery)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            exit_code = self._child_main(number, link, ledger, cells_fd)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(exit_code)  # never unwind into code that belongs to the supervisor's life

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = ended
                self._tell(_ENDED, self._numbers.pop(pid), os.waitstatus_to_exitcode(status))

    def _tell(self, kind: bytes, number: int, value: int) -> None:
        self._requests.sendall(_EVENT.pack(kind, number, value))

    def _end(self) -> NoReturn:
        for pid in self._numbers:
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


def _fork() -> int | None:
    """None where no process or no memory is left for one more: those that there are shall go on."""
    try:
        return os.fork()
    except OSError as error:
        with contextlib.suppress(OSError):
            os.write(2, f"A worker process cannot be made: {error}\n".encode())
        return None


def _listen_for_deaths() -> socket.socket:
    """Readable whenever a child has ended. Shutdown signals are for the supervisor, which tells the children."""
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, wake_only)
    wake_at_shutdown()
    return reader
