"""What was counted and measured over some time: of a type, a pool, or all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jobs.core.histogram import Histogram

OUTCOMES = ("succeeded", "failed", "crashed", "cancelled", "snoozed", "released")
"""How an attempt can end, each counted once."""

COUNTED = (
    "enqueued",
    "started",
    *OUTCOMES,
    "retried",
    "dead",
    "resubmitted",
    "duplicates",
    "stale",
)
"""Everything that is counted, in the order in which people read it.

``started``: taken by a worker to be run (again where it was handed back). ``failed``: attempts that raised; of these
jobs ``retried`` and ``dead`` say what became. ``released``: handed back by a worker that had begun. ``duplicates``:
enqueues that found their job there already. ``stale``: ends that were refused because the lease was somebody else's.
"""


class Figures:
    """Counts by name, and how long jobs waited and ran.

    ``wait``: from ready to taken, one for each start. ``run``: of the attempts that succeeded. ``failed_ms``: sum over
    those that failed. Mergeable: figures of partitions and of times add up.
    """

    __slots__ = ("counts", "failed_ms", "run", "wait")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.wait = Histogram()
        self.run = Histogram()
        self.failed_ms = 0

    @classmethod
    def of(cls, stored: Iterable[tuple[str, int]]) -> Figures:
        """Of fields as the scripts write them."""
        figures = cls()
        for name, number in stored:
            figures.add(name, number)
        return figures

    def add(self, name: str, number: int) -> None:
        """One field as the scripts write it: a count, ``wait<bucket>``, ``run<bucket>`` or a sum of ms."""
        match name:
            case "wait_ms":
                self.wait.total_ms += number
            case "run_ms":
                self.run.total_ms += number
            case "failed_ms":
                self.failed_ms += number
            case _ if name[:4] == "wait" and name[4:].isdecimal():
                self.wait.add(int(name[4:]), number)
            case _ if name[:3] == "run" and name[3:].isdecimal():
                self.run.add(int(name[3:]), number)
            case _:
                self.counts[name] = self.counts.get(name, 0) + number

    def merge(self, other: Figures) -> None:
        for name, number in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + number
        self.wait.merge(other.wait)
        self.run.merge(other.run)
        self.failed_ms += other.failed_ms

    def count(self, name: str) -> int:
        """One of ``COUNTED``. Each start has a wait and each success a run, so these are counted by them."""
        match name:
            case "started":
                return self.wait.count
            case "succeeded":
                return self.run.count
            case _:
                return self.counts.get(name, 0)

    @property
    def ended(self) -> int:
        """Attempts that came to an end by themselves: those that tell how fast a pool works."""
        return self.count("succeeded") + self.count("failed")

    @property
    def run_seconds(self) -> float | None:
        """Mean time of an attempt, failed ones included; None where none ended."""
        return (self.run.total_ms + self.failed_ms) / self.ended / 1000 if self.ended else None

    def totals(self) -> dict[str, int]:
        """What was counted at least once, by name."""
        return {name: number for name in COUNTED if (number := self.count(name))}

    def as_dict(self) -> dict[str, Any]:
        """Counts by name, and waiting and running time: mean and quantiles in seconds."""
        return {
            **{name: self.count(name) for name in COUNTED},
            "wait_ms": self.wait.total_ms,
            "run_ms": self.run.total_ms + self.failed_ms,
            "wait": self.wait.as_dict(),
            "run": self.run.as_dict(),
        }


def merged(parts: Iterable[Figures]) -> Figures:
    """All of them together."""
    whole = Figures()
    for part in parts:
        whole.merge(part)
    return whole


def by_type(fields: Mapping[str, int]) -> dict[str, Figures]:
    """Of fields ``<figure>:<type>``: job type → its figures."""
    found: dict[str, Figures] = {}
    for field, number in fields.items():
        name, colon, type_name = field.partition(":")
        if colon:
            found.setdefault(type_name, Figures()).add(name, number)
    return found
