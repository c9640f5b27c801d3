"""The processes of ``manage.py dev``: started together, shown together, ended together.

Each runs in a session of its own, so that a Ctrl-C reaches only this process, which ends the others in the right order:
who makes work first, who does it next, who shows it last. If this process is killed, the kernel tells them to end.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from functools import partial
from types import FrameType
from typing import IO

from jobs.runtime.process import describe_exit, die_with_parent

READY_SECONDS = 60.0
"""How long the page may take to answer for the first time."""

STOP_SECONDS = 10.0
"""How long a process may take to end when asked, before it is killed."""

COLOURS = (36, 33, 35, 32)


class Part:
    """One process of the stack. Its output appears line by line behind its name."""

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], screen: Screen) -> None:
        self.name = name
        self.process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # SIGTERM, not SIGKILL: a reloading server has children of its own to end.
            preexec_fn=partial(die_with_parent, os.getpid(), signal.SIGTERM),
        )
        self._reader = threading.Thread(target=self._show, args=(screen,), name=f"output of {name}", daemon=True)
        self._reader.start()

    def _show(self, screen: Screen) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                screen.line(self.name, line.decode(errors="replace").rstrip())

    def ask_to_end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()

    def end(self, within: float) -> None:
        """Waits for the end, and enforces it: on the process and on whatever it left in its session."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(within)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(2)


class Screen:
    """Lines of several processes on one terminal, each whole and behind the name of its process."""

    def __init__(self, out: IO[str], names: Sequence[str], *, colour: bool) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._width = max(map(len, names))
        self._colours = dict(zip(names, COLOURS, strict=False)) if colour else {}

    def line(self, name: str, text: str) -> None:
        prefix = f"{name:<{self._width}} |"
        if name in self._colours:
            prefix = f"\x1b[{self._colours[name]}m{prefix}\x1b[0m"
        self.say(f"{prefix} {text}")

    def say(self, text: str) -> None:
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._out.write(text + "\n")
            self._out.flush()


class Interruption:
    """Turns Ctrl-C, a closed terminal and SIGTERM into a question that can be asked: ``wanted``."""

    def __init__(self) -> None:
        self.wanted = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True


class Stack:
    """The parts in the order in which they end."""

    def __init__(self, commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], screen: Screen) -> None:
        self.screen = screen
        self._done: list[Part] = []
        self.parts = [Part(name, command, environment, screen) for name, command in commands.items()]

    def ended_part(self) -> Part | None:
        """A part that ended by itself, which none of them should. One that was told to, such as a worker that was
        drained, is said and leaves the others alone."""
        for part in self.parts:
            code = part.process.poll()
            if code == 0 and part not in self._done:
                self._done.append(part)
                self.screen.say(f"{part.name} has ended, as it was told to. The others go on; Ctrl-C stops them.")
            elif code:
                return part
        return None

    def wait_until_ready(self, url: str, interruption: Interruption) -> bool:
        """Waits until the page answers. False: interrupted, a part ended, or it takes too long."""
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline and not interruption.wanted and self.ended_part() is None:
            if _answers(url):
                return True
            time.sleep(0.1)
        return False

    def watch(self, interruption: Interruption) -> Part | None:
        """Waits for the interruption (None) or for a part that ends by itself (that part)."""
        while not interruption.wanted:
            if part := self.ended_part():
                return part
            time.sleep(0.2)
        return None

    def end(self) -> None:
        for part in self.parts:
            part.ask_to_end()
        deadline = time.monotonic() + STOP_SECONDS
        for part in self.parts:
            part.end(max(0.0, deadline - time.monotonic()))


def describe_end(part: Part) -> str:
    return f"{part.name} {describe_exit(part.process.returncode)}; stopping the others."


def manage(*arguments: str) -> list[str]:
    """The command line of another management command of this project, in this interpreter."""
    return [sys.executable, sys.argv[0], *arguments]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the server will: a port whose last connections are still closing down is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port(first: int, tries: int = 100) -> int | None:
    """The first free port from this one on."""
    return next((port for port in range(first, min(first + tries, 65_536)) if is_free(port)), None)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own http:// address
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
