"""What happened, as each process saw it: one line before and one after each action.

A line is one JSON object, appended with a single unbuffered ``write``, so that a SIGKILL between two instructions loses
nothing that was written before it. Each process has a file of its own. All processes run on one kernel, so its
monotonic clock orders the lines of all files.
"""

from __future__ import annotations

import itertools
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

Phase = Literal["invoke", "ok", "refused", "unknown"]


class Event(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One line. ``op`` pairs an invocation with its outcome; an outcome that never came means the process died.

    ``unknown`` is an outcome too: the action may have happened at any moment from its invocation to the end of the run.
    """

    proc: str  # role of the process: producer-1, host-2, nemesis
    boot: str  # random per process: a process id may come back, this does not
    seq: int
    mono_ns: int
    event: str  # enqueue, claim, start, end, renew, complete, fail, release, crash, cancel, pause, resume, fault, …
    phase: Phase
    op: str
    job: str | None = None
    key: str | None = None  # the producer's own name for what it wanted: at most one job may come of it
    token: str | None = None
    fence: int | None = None
    attempt: int | None = None
    server_ms: int | None = None
    due_ns: int | None = None  # monotonic time before which the job must not start
    lease_ms: int | None = None
    pool: str | None = None
    outcome: str | None = None  # what the other side answered, or how a handler ended
    fault: str | None = None
    facts: dict[str, Any] = {}

    @property
    def process(self) -> str:
        """Unique over the run, also when roles and process ids are used again."""
        return f"{self.proc}/{self.boot}"


class History:
    """Appends the events of this process. Safe to share between threads; made anew after a fork."""

    def __init__(self, folder: Path, proc: str) -> None:
        self.proc = proc
        self.boot = secrets.token_hex(4)
        self.pid = os.getpid()
        self._ops = itertools.count(1)
        self._seq = itertools.count(1)
        folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(
            folder / f"{proc}-{self.pid}-{self.boot}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )

    def new_op(self) -> str:
        return f"{self.boot}:{next(self._ops)}"

    def write(self, event: str, phase: Phase, op: str | None = None, **fields: Any) -> str:
        """Appends one line and returns its op, a new one if none is given."""
        op = op or self.new_op()
        line = Event(
            proc=self.proc,
            boot=self.boot,
            seq=next(self._seq),
            mono_ns=time.monotonic_ns(),
            event=event,
            phase=phase,
            op=op,
            **fields,
        )
        os.write(self._file, msgspec.json.encode(line) + b"\n")
        return op

    @contextmanager
    def fault(self, name: str, **facts: Any) -> Iterator[dict[str, Any]]:
        """Brackets a fault. The body puts the proof that it took effect into the dictionary it is given."""
        op = self.write("fault", "invoke", fault=name, facts=facts)
        proof: dict[str, Any] = {}
        try:
            yield proof
        finally:
            self.write("fault", "ok" if proof else "refused", op, fault=name, facts=facts | proof)

    def close(self) -> None:
        os.close(self._file)


def read(folder: Path) -> list[Event]:
    """All events of all processes in the order of the kernel's clock.

    The last line of a process that was killed while it wrote may be cut off: what it began to say, nobody has heard.
    Any other torn line is an error.
    """
    decode = msgspec.json.Decoder(Event).decode
    whole = (file.read_bytes().rpartition(b"\n")[0] for file in sorted(folder.glob("*.jsonl")))
    events = [decode(line) for lines in whole for line in lines.splitlines()]
    return sorted(events, key=lambda event: (event.mono_ns, event.boot, event.seq))


def describe(event: Event) -> str:
    """One event as a line for people."""
    fields = {
        name: value
        for name, value in msgspec.to_builtins(event).items()
        if name not in {"boot", "seq", "event", "phase", "mono_ns", "op"}
    }
    return f"{event.mono_ns / 1e9:.6f} {event.event} {event.phase} {json.dumps(fields, default=str)}"
