"""What a run must have met, and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

TERMINAL = frozenset({"succeeded", "dead", "cancelled"})


class FinalJob(msgspec.Struct, kw_only=True, frozen=True):
    """A job as it was read at the end of the run."""

    id: str
    state: str
    attempt: int = 0
    crashes: int = 0
    max_retries: int = 3
    max_crashes: int = 3
    failures: int = 0  # attempts that ended in an error, in this life of the job
    resubmissions: int = 0


@dataclass(frozen=True)
class Violation:
    """One broken promise: which check, which job or process, and the facts."""

    check: str
    subject: str
    facts: str

    def __str__(self) -> str:
        return f"{self.check} {self.subject}: {self.facts}"


@dataclass(frozen=True)
class Expectations:
    """What this run must have met, and the bounds that hold in it."""

    faults: Sequence[str] = ()  # each must have taken effect at least once
    recoveries: int = 0  # at least so many jobs went on after their lease was lost
    zombies: int = 0  # at least so many handlers went on beside their successor
    recovery_seconds: float = 15.0  # K17: from the end of a fault to the next claim
    slots: Mapping[str, int] = field(default_factory=dict)  # pool → most handlers at once in a process
    at_once: Mapping[str, int] = field(default_factory=dict)  # limit → most handlers at once anywhere


@dataclass
class Report:
    violations: list[Violation] = field(default_factory=list)
    allowed_losses: list[str] = field(default_factory=list)
    duplicates: dict[str, int] = field(default_factory=dict)  # job → executions beyond its first and its retries
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.violations

    def __str__(self) -> str:
        lines = [
            f"{len(self.violations)} violations, {len(self.allowed_losses)} allowed losses, "
            f"{len(self.duplicates)} jobs ran more than once"
        ]
        lines += [f"  {name:<28} {value:,.10g}" for name, value in sorted(self.numbers.items())]
        counted = Counter(violation.check for violation in self.violations)
        lines += [f"  {check}: {count}" for check, count in sorted(counted.items())]
        lines += [f"  {violation}" for violation in self.violations[:20]]
        return "\n".join(lines)
