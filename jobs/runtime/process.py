"""What a process knows of itself and its kin: a name of its own, memory, whether it is stopped, dying with its parent.

Linux answers every question from ``/proc`` and ``prctl``. Elsewhere the answers are the harmless ones, and a process
whose parent died still ends by the closed socket between them.
"""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")  # per second
_PR_SET_PDEATHSIG = 1


def new_host_id() -> str:
    """``<hostname>-<pid>-<random>``: never reused, even when host name and pid are (containers reuse both)."""
    hostname = re.sub(r"[^A-Za-z0-9_.-]", "-", socket.gethostname()) or "host"
    return f"{hostname}-{os.getpid()}-{secrets.token_hex(3)}"


def resident_bytes(pid: int) -> int:
    """Memory of the process that is in RAM, in bytes; 0 when it is gone or cannot be asked."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def cpu_seconds(pid: int) -> float:
    """Processor time that the process has used, in user and system mode; 0.0 when it is gone or cannot be asked."""
    try:
        # After the command in parentheses, which may hold any character, comes the state as the third field of all.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS
    except (OSError, IndexError, ValueError):
        return 0.0


def is_stopped(pid: int) -> bool:
    """Frozen by SIGSTOP or a debugger: alive, and unable to do or to abandon anything."""
    try:
        # The second field is the command in parentheses and may itself hold any character.
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False


def die_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Get this signal the moment the process ``parent`` dies, however it dies. Called first thing after the fork.

    The thread that forked must live as long as its process: the kernel watches the thread.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    if os.getppid() != parent:  # it died before the call above
        os._exit(1)


def tied() -> Callable[[], None]:
    """As ``preexec_fn`` of a Popen: what it starts dies with this process, however this one dies."""
    return partial(die_with_parent, os.getpid())


def end_fork(error: BaseException | None) -> NoReturn:
    """Ends a process that somebody's code has forked off this one, and that has come out of that code: with ``error``,
    or without. Its exit code is the one that Python would have given it.

    Nothing else of this process may run in it: it has one thread, and shares every connection with its parent.
    """
    code = 0 if error is None else 1
    if isinstance(error, SystemExit) and (error.code is None or isinstance(error.code, int)):
        code = error.code or 0
    elif error is not None:
        text = str(error) if isinstance(error, SystemExit) else "".join(traceback.format_exception(error))
        with suppress(OSError):
            os.write(2, text.encode(errors="backslashreplace") + b"\n")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code & 0xFF)


def describe_exit(exit_code: int) -> str:
    """In a person's words how a process ended; negative codes are signals (``killed by SIGKILL (9)``)."""
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    number = -exit_code
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "signal"
    return f"killed by {name} ({number})"
