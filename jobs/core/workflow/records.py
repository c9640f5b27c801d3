"""A run and its nodes as they are read from the store at one moment. Times are Unix milliseconds of the server."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from jobs.core.job import iso, moment_or_none
from jobs.core.states import TERMINAL, JobState
from jobs.core.workflow.definition import Kind, Node

OVER = frozenset({"succeeded", "failed", "cancelled"})
"""States of a run that has ended."""

PREPARING = "preparing"
"""State of a run whose nodes are still being written down; nothing of it starts."""


SKIPPED = "Skipped"
"""Type of the error that a node holds which a person skipped: it has succeeded, and says so."""


class RunFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One run, without its nodes."""

    id: str
    name: str
    state: str
    created_at_ms: int
    finished_at_ms: int = 0  # 0: it has not ended
    version: int | None = None  # of the stored definition that it started with
    payload: Any = None
    schedule: str | None = None
    fire_time_ms: int | None = None
    started_by: str | None = None
    total: int = 0  # nodes; grows when nodes are added
    lives: int = 0  # how often it went on after it had ended
    counts: dict[str, int] = {}  # state of nodes → how many; "ready" are all that have become jobs and have not ended
    cancelled: Any = None
    paused: Any = None
    deadline_ms: int | None = None
    redo: Any = None
    """The retry that is being written down: nothing goes on until it is whole."""
    halts: int = 0
    """How often it was paused or went on, as far as partitions may hold its jobs back."""
    halts_told: int = 0
    """Up to which of them all partitions know how it stands."""
    stopped: int = 0
    """1: the jobs of the cancelled run have been asked to stop."""
    to_stop: tuple[str, ...] = ()
    """Jobs of nodes that a person skipped, which may not have been asked to stop yet."""

    @property
    def is_over(self) -> bool:
        return self.state in OVER

    @property
    def ended(self) -> int:
        """How many of its nodes have."""
        return sum(self.counts.get(state, 0) for state in TERMINAL)

    @property
    def created_at(self) -> datetime | None:
        return moment_or_none(self.created_at_ms)

    @property
    def finished_at(self) -> datetime | None:
        return moment_or_none(self.finished_at_ms)

    @property
    def seconds(self) -> float | None:
        """From its creation to its end."""
        return (self.finished_at_ms - self.created_at_ms) / 1000 if self.finished_at_ms else None

    def as_dict(self) -> dict[str, Any]:
        """The JSON of a run, as lists of runs have it."""
        return {
            "id": self.id,
            "name": self.name,
            "state": self.state,
            "created_at": iso(self.created_at),
            "finished_at": iso(self.finished_at),
            "version": self.version,
            "payload": self.payload,
            "schedule": self.schedule,
            "fire_time": iso(moment_or_none(self.fire_time_ms)),
            "started_by": self.started_by,
            "paused": self.paused,
            "cancelled": self.cancelled,
            "deadline": iso(moment_or_none(self.deadline_ms)),
            "counts": {word: count for word, count in self.counts.items() if count},
        }


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """One node of a run. ``state`` is a word for jobs; ``blocked`` while it waits for parents."""

    key: str
    rank: int  # parents have lower ones
    state: str
    node: Node
    scope: str = ""  # key of the group that it belongs to
    job: str | None = None
    released_at_ms: int = 0  # 0: not yet
    started_at_ms: int = 0
    ended_at_ms: int = 0
    attempts: int = 0
    error: dict[str, Any] | None = None
    version: int = 0  # of the newest news of its job
    again: int = 0  # how often its job was to live again
    is_released: bool = False
    is_whole: bool = True
    """All of its edges are written down: those of a node with many come in several calls."""

    @property
    def type(self) -> str:
        """What it runs or waits for, in a word: the job type where it is a job."""
        return self.node.label

    @property
    def kind(self) -> Kind:
        return self.node.kind

    @property
    def is_over(self) -> bool:
        return self.state in TERMINAL

    @property
    def seconds(self) -> float | None:
        """From the start of its job to its end; None where it has not had both."""
        if not (self.started_at_ms and self.ended_at_ms):
            return None
        return max(0, self.ended_at_ms - self.started_at_ms) / 1000

    @property
    def skipped(self) -> str:
        """Who counted it as succeeded without running it, and why: ``ann skipped it: loaded by hand``; else nothing."""
        error = self.error or {}
        return str(error["message"]) if self.state == JobState.SUCCEEDED and error.get("type") == SKIPPED else ""

    @property
    def is_job(self) -> bool:
        """It was released and has not ended: its job says how it stands."""
        return self.state == JobState.READY

    def as_dict(self) -> dict[str, Any]:
        """The JSON of a node."""
        return {
            "key": self.key,
            "state": self.state,
            "job": self.job,
            "type": self.type,
            "kind": str(self.node.kind),
            "group": self.scope or None,
            "released_at": iso(moment_or_none(self.released_at_ms)),
            "started_at": iso(moment_or_none(self.started_at_ms)),
            "finished_at": iso(moment_or_none(self.ended_at_ms)),
            "attempts": self.attempts,
            "error": self.error,
        }
