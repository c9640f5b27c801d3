"""The process that keeps the bundled Valkey server alive while somebody uses it, and no longer.

Run as a script by ``jobs.store.embedded``, in a session of its own, so that a Ctrl-C in a terminal does not reach it.
Standard library only and nothing of this project: it stays for as long as the server does and should weigh nothing.

Two locks in the server's folder tell the story. The kernel drops both when their holders die, however they die:

- ``server.lock``, exclusive: held by the guardian *and* inherited by its server. While it is held, a server runs or is
  about to; whoever gets it may start one. So two servers can never write the same data.
- ``clients.lock``, shared: held by every process that uses the server (and by what it forks). Whoever gets it
  exclusively knows that nobody is left; holding it keeps newcomers waiting until the shutdown is over.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

SERVER_LOCK = "server.lock"
CLIENTS_LOCK = "clients.lock"
LOG = "valkey.log"

IDLE_SECONDS = 2.0
"""How long the server outlives its last user: long enough for a restart or the next command in a script."""
LOOK_SECONDS = 0.25
"""How often the guardian looks whether anybody is left. A signal or the server's death wakes it at once."""
STOP_SECONDS = 20.0
"""How long a server may take to write out its data before it is killed."""
LOG_LIMIT = 1_000_000
"""Bytes of log that are kept when a server starts."""
HOPELESS = 5
"""A server that ends this often in a row without having served for a second is given up."""

PR_SET_PDEATHSIG = 1


def watch(folder: Path, socket_path: str, binary: str, *, durable: bool) -> int:
    """Runs the server until nobody uses it. Returns the exit code; 0 also when another guardian is at work."""
    lock = take_alone(folder / SERVER_LOCK)
    if lock is None:
        return 0
    clients = os.open(folder / CLIENTS_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    bell = Bell()
    server, started = start(folder, socket_path, binary, lock, durable=durable), time.monotonic()
    failures = 0
    idle_since: float | None = None
    while True:
        bell.wait(LOOK_SECONDS)
        if bell.told_to_stop:
            break
        if not is_file(lock, folder / SERVER_LOCK):
            # Somebody has removed the folder, and others may have made it anew: a server that ends in good order takes
            # the socket of that name along, which may be theirs.
            server.kill()
            server.wait()
            return 0
        if server.poll() is not None:
            failures = failures + 1 if time.monotonic() - started < 1.0 else 0
            if failures == HOPELESS:
                return 1
            time.sleep(0.1 * failures)
            server, started = start(folder, socket_path, binary, lock, durable=durable), time.monotonic()
        if not try_lock(clients, fcntl.LOCK_EX):
            idle_since = None
            continue
        idle_since = idle_since or time.monotonic()
        if time.monotonic() - idle_since >= IDLE_SECONDS:
            break
        fcntl.flock(clients, fcntl.LOCK_UN)
    stop(server, socket_path)
    if not durable:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


class Bell:
    """Sleep that ends early when the server dies or a signal asks to stop."""

    def __init__(self) -> None:
        self.told_to_stop = False
        self._ear, mouth = os.pipe()
        for end in (self._ear, mouth):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(mouth, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.told_to_stop = True

    def wait(self, seconds: float) -> None:
        if select.select([self._ear], [], [], seconds)[0]:
            os.read(self._ear, 1024)


def start(folder: Path, socket_path: str, binary: str, lock: int, *, durable: bool) -> subprocess.Popen[bytes]:
    log = folder / LOG
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.write_bytes(log.read_bytes()[-LOG_LIMIT // 2 :])
    Path(socket_path).unlink(missing_ok=True)  # of a server that was killed; a living one would hold the lock
    options = {
        "port": "0",
        "unixsocket": socket_path,
        "unixsocketperm": "600",
        "dir": str(folder),
        "logfile": str(log),
        "daemonize": "no",
        "save": "",
        "appendonly": "yes" if durable else "no",
        "appendfsync": "everysec",
        "maxmemory-policy": "noeviction",
    }
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    guardian = os.getpid()

    def before_exec() -> None:
        """In the child: leave with the guardian, even if that is killed by SIGKILL."""
        if sys.platform == "linux":
            # SIGTERM, not SIGKILL: the server writes out what it holds before it goes.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != guardian:  # it died before the line above
                os._exit(1)

    with open(os.devnull, "rb") as nothing, open(log, "ab") as output:
        os.chmod(log, 0o600)
        return subprocess.Popen(
            [binary, *arguments],
            stdin=nothing,
            stdout=output,
            stderr=output,
            cwd=folder,
            pass_fds=[lock],
            preexec_fn=before_exec,
        )


def stop(server: subprocess.Popen[bytes], socket_path: str) -> None:
    """Asks the server to write out its data and end; kills it if it cannot."""
    server.terminate()
    server.send_signal(signal.SIGCONT)
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    Path(socket_path).unlink(missing_ok=True)


def take_alone(path: Path) -> int | None:
    """Opens and exclusively locks a file: its descriptor, or None when somebody else holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if try_lock(descriptor, fcntl.LOCK_EX):
        return descriptor
    os.close(descriptor)
    return None


def try_lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_file(descriptor: int, path: Path) -> bool:
    """Whether what is open is still what the path names."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def greeting(socket_path: str, *, within: float) -> str | None:
    """What a server behind this socket answers to PING: ``+PONG``, or ``-LOADING …`` while it loads its data.

    Empty when it accepts and says nothing for so many seconds, None when nobody is there.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(within)
        try:
            connection.connect(socket_path)
            connection.sendall(b"PING\r\n")
            return connection.recv(64).decode(errors="replace")
        except TimeoutError:
            return ""
        except OSError:
            return None


def main(arguments: list[str]) -> int:
    folder, socket_path, binary, durable = arguments
    if os.fork():  # the caller waits for this parent only, so the guardian becomes nobody's child
        os._exit(0)
    os.umask(0o077)
    try:
        return watch(Path(folder), socket_path, binary, durable=durable == "durable")
    except Exception as error:
        with open(Path(folder) / LOG, "a") as log:
            log.write(f"guardian: {error!r}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
