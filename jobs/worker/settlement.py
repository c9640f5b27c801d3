"""How an attempt can end besides ``Completion`` and ``Failure`` of the engine: without a verdict on the job."""

from __future__ import annotations

from typing import NamedTuple

from jobs.engine import Completion, Failure


class Release(NamedTuple):
    """Back to ``ready`` at its old place. ``charged``: the attempt had begun and counts."""

    id: str
    token: str
    type: str
    charged: bool = False


class Park(NamedTuple):
    """No handler here, or the type is switched off: wait for a worker that may run it."""

    id: str
    token: str
    type: str


class Drop(NamedTuple):
    """The lease is no longer ours: say nothing to anybody."""

    id: str


class Elsewhere(NamedTuple):
    """It ran in a process of its own, which has told its end."""

    id: str


Settlement = Completion | Failure | Release | Park | Drop | Elsewhere
